"""Money that waits goes back to its payer: ordered at the bank, or noted where staff sent it by hand.

How an order ends: `receipts.settling`.
"""

from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime

import banks
from approvals import services as approvals
from approvals.models import Kind
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
    """An account that money can be sent to, as whoever names it validated it; or the payment to take back.

    is_payers: where the money came from, by the bank's own record.
    """

    bank_code: str = ""
    account: str = field(default="", repr=False)
    account_name: str = ""
    transaction_id: str = ""
    is_payers: bool = False


def way_back(receipt: Receipt) -> Destination:
    """To the payer: by taking the payment back, or to the account the bank told.

    Raises NoDestination, and NoSender where the bank never told by which id it could take it back.
    """
    if banks.voids(accounts.bank(receipt.bank)):
        if not receipt.told_id:
            raise NoSender()
        return Destination(transaction_id=receipt.told_id, is_payers=True)
    try:
        thaibanks.check_account(receipt.payer_bank_code, receipt.payer_account)
    except ValueError:
        raise NoDestination() from None
    name = receipt.payer_name or NAMELESS
    return Destination(receipt.payer_bank_code, receipt.payer_account, name, is_payers=True)


def check_sender(receipt: Receipt, to: Destination | None = None) -> None:
    """Whether the receipt's bank can send, and to such a destination. Raises NoSender."""
    route = accounts.bank(receipt.bank)
    if to is not None and banks.voids(route) != bool(to.transaction_id):
        raise NoSender()
    try:
        banks.sender(route, links.of(_merchant_id(receipt)))
    except banks.UnknownBank:
        raise NoSender() from None


def entered(receipt: Receipt, to: Destination) -> Destination:
    """An account that staff entered; it may be the payer's all the same."""
    with suppress(NoDestination, NoSender):
        payers = way_back(receipt)
        return replace(to, is_payers=(payers.bank_code, payers.account) == (to.bank_code, to.account))
    return to


def order(receipt: Receipt, to: Destination, *, by: str, why: str, now: datetime) -> Return:
    """Order all of a receipt back, in the caller's transaction and under the receipt's lock.

    To an account other than the payer's it may wait for a second person.
    """
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
    is_held = not to.is_payers and _judge(receipt, made, Kind.RETURN, by, why, now, to)
    transfers.queue(told, route=route, at=now, merchant_id=_merchant_id(receipt), is_held=is_held)
    receipt.resolve(Resolution.SENDING_BACK, now=now)
    return made


def note_by_hand(receipt: Receipt, *, bank_reference: str, by: str, why: str, now: datetime) -> Return:
    """Staff have sent it at the bank, which calls that `bank_reference`. Under the receipt's lock.

    It may wait for a second person; until then the receipt is on its way back.
    """
    made = _new(receipt, accounts.bank(receipt.bank), now, by_hand=True, bank_reference=bank_reference)
    if _judge(receipt, made, Kind.RETURN_BY_HAND, by, why, now):
        receipt.resolve(Resolution.SENDING_BACK, now=now)
    else:
        complete_by_hand(receipt, made, now=now)
    return made


def complete_by_hand(receipt: Receipt, made: Return, *, now: datetime) -> None:
    """The caller holds the locks: receipt, return."""
    end(made, ReturnStatus.COMPLETED, completed_at=now)
    receipt.resolve(Resolution.SENT_BACK, now=now)
    ledger.send_back(subject_id=made.id, amount=made.amount, to=made.route, at=now)


def stop(receipt: Receipt, *, now: datetime) -> bool:
    """Take back the order under way, under the receipt's lock. False if the bank may have been told.

    Staff may have sent by hand what still waits for a second person.
    """
    made = Return.objects.select_for_update(no_key=True).get(receipt=receipt, status=ReturnStatus.PENDING)
    if made.by_hand:
        return False
    try:
        transfers.cancel(made.id, now=now)
    except transfers.AlreadyTold:
        return False
    approvals.cancel(made.id, now=now)
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


def _judge(
    receipt: Receipt,
    made: Return,
    kind: Kind,
    by: str,
    why: str,
    now: datetime,
    to: Destination = Destination(),
) -> bool:
    """Whether it waits for a second person."""
    item = approvals.Outgoing(
        kind=kind,
        subject_id=made.id,
        merchant_id=_merchant_id(receipt) or None,
        amount=made.amount,
        bank_code=to.bank_code,
        account=to.account,
        account_name=to.account_name,
        note=why,
        requested_by=f"staff:{by}",
    )
    return approvals.judge(item, now=now).is_waiting


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
