"""Money that waits goes back to its payer: ordered at the bank, or noted where staff sent it by hand.

How an order ends: `receipts.settling`.
"""

from dataclasses import dataclass, field
from datetime import datetime

import banks
from banks import Order
from core import ids, thaibanks
from merchants import links
from merchants.models import Merchant
from receipts.models import Receipt, Resolution, Return, ReturnStatus
from refunds.destinations import NAMELESS
from transactions import accounts, ledger
from transfers import services as transfers


class NoDestination(Exception):
    """The bank did not tell a payer's account that money can be sent to."""


class NoSender(Exception):
    """Money cannot be sent by this bank: staff send it at the bank itself, and note it."""


@dataclass(frozen=True, slots=True)
class Destination:
    """An account that money can be sent to, as whoever names it validated it; or the payment to take back."""

    bank_code: str = ""
    account: str = field(default="", repr=False)
    account_name: str = ""
    transaction_id: str = ""


def way_back(receipt: Receipt) -> Destination:
    """To the payer: by taking the payment back, or to the account the bank told.

    Raises NoDestination, and NoSender where the bank never told by which id it could take it back.
    """
    if banks.voids(accounts.bank(receipt.bank)):
        if not receipt.told_id:
            raise NoSender()
        return Destination(transaction_id=receipt.told_id)
    try:
        thaibanks.check_account(receipt.payer_bank_code, receipt.payer_account)
    except ValueError:
        raise NoDestination() from None
    return Destination(receipt.payer_bank_code, receipt.payer_account, receipt.payer_name or NAMELESS)


def check_sender(receipt: Receipt, to: Destination | None = None) -> None:
    """Whether the receipt's bank can send, and to such a destination. Raises NoSender."""
    route = accounts.bank(receipt.bank)
    if to is not None and banks.voids(route) != bool(to.transaction_id):
        raise NoSender()
    try:
        banks.sender(route, links.of(_merchant_id(receipt)))
    except banks.UnknownBank:
        raise NoSender() from None


def order(receipt: Receipt, to: Destination, *, now: datetime) -> Return:
    """Order all of a receipt back, in the caller's transaction and under the receipt's lock."""
    route = accounts.bank(receipt.bank)
    made = _new(receipt, route, now)
    told = Order(
        order_id=made.id,
        purpose="return",
        amount=made.amount,
        bank_code=to.bank_code,
        account=to.account,
        account_name=to.account_name,
        charge_id=to.transaction_id,
    )
    transfers.queue(told, route=route, at=now, merchant_id=_merchant_id(receipt))
    receipt.resolve(Resolution.SENDING_BACK, now=now)
    return made


def note_by_hand(receipt: Receipt, *, bank_reference: str, now: datetime) -> Return:
    """Staff have sent it at the bank, which calls that `bank_reference`. Under the receipt's lock."""
    route = accounts.bank(receipt.bank)
    made = _new(
        receipt,
        route,
        now,
        status=ReturnStatus.COMPLETED,
        by_hand=True,
        bank_reference=bank_reference,
        completed_at=now,
    )
    receipt.resolve(Resolution.SENT_BACK, now=now)
    ledger.send_back(subject_id=made.id, amount=made.amount, to=route, at=now)
    return made


def stop(receipt: Receipt, *, now: datetime) -> bool:
    """Take back the order under way, under the receipt's lock. False if the bank may have been told."""
    made = Return.objects.select_for_update(no_key=True).get(receipt=receipt, status=ReturnStatus.PENDING)
    try:
        transfers.cancel(made.id, now=now)
    except transfers.AlreadyTold:
        return False
    end(made, ReturnStatus.CANCELED)
    return True


def end(made: Return, status: ReturnStatus, **fields: object) -> None:
    """What became of it. The caller holds the locks: receipt, return."""
    for name, value in ({"status": status} | fields).items():
        setattr(made, name, value)
    made.save(update_fields=["status", *fields])


def payee_of(receipt: Receipt) -> Merchant | None:
    """Whom it was paid to, by the biller; None where that is nobody."""
    return Merchant.objects.filter(bank=receipt.bank, biller_id=receipt.biller_id).first()


def _merchant_id(receipt: Receipt) -> str:
    payee = payee_of(receipt)
    return payee.id if payee else ""


def _new(receipt: Receipt, route: str, now: datetime, **fields: object) -> Return:
    made: Return = Return.objects.create(
        id=ids.new("rtn_", now),
        receipt=receipt,
        amount=receipt.amount,
        route=route,
        created_at=now,
        **fields,
    )
    return made
