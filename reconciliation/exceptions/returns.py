"""Money that waits goes back to its payer: ordered at the bank, or noted where staff sent it by hand.

How an order ends: `reconciliation.exceptions.return_completion`.
"""

from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime

import banks
from approvals import services as approvals
from approvals.models import ApprovalKind
from banks import TransferOrder
from core import ids, thaibanks
from ledger import accounts
from ledger import services as ledger
from merchants import bank_connections
from merchants.models import Merchant
from reconciliation.models import BankTransaction, ResolutionState, Return, ReturnStatus
from refunds.destinations import UNKNOWN_NAME
from transfers import services as transfers


class NoDestination(Exception):
    """The bank did not tell a payer's account that money can be sent to."""


class NoSender(Exception):
    """Money cannot be sent by this bank: staff send it at the bank itself, and note it."""


@dataclass(frozen=True, slots=True)
class ReturnDestination:
    """An account that money can be sent to, as whoever names it validated it; or the payment to take back.

    is_payers: where the money came from, by the bank's own record.
    """

    bank_code: str = ""
    account: str = field(default="", repr=False)
    account_name: str = ""
    transaction_id: str = ""
    is_payers: bool = False


def destination_of_payer(movement: BankTransaction) -> ReturnDestination:
    """To the payer: by taking the payment back, or to the account the bank told.

    Raises NoDestination, and NoSender where the bank never told by which id it could take it back.
    """
    if banks.is_void_only(accounts.bank(movement.bank)):
        if not movement.id_at_bank:
            raise NoSender()
        return ReturnDestination(transaction_id=movement.id_at_bank, is_payers=True)
    try:
        thaibanks.check_account(movement.payer_bank_code, movement.payer_account)
    except ValueError:
        raise NoDestination() from None
    name = movement.payer_name or UNKNOWN_NAME
    return ReturnDestination(movement.payer_bank_code, movement.payer_account, name, is_payers=True)


def check_bank_can_send(movement: BankTransaction, destination: ReturnDestination | None = None) -> None:
    """Whether the bank transaction's bank can send, and to such a destination. Raises NoSender."""
    route = accounts.bank(movement.bank)
    if destination is not None and banks.is_void_only(route) != bool(destination.transaction_id):
        raise NoSender()
    try:
        banks.sender(route, bank_connections.credentials_of(_merchant_id(movement)))
    except banks.UnknownBank:
        raise NoSender() from None


def destination_from_staff(movement: BankTransaction, destination: ReturnDestination) -> ReturnDestination:
    """An account that staff entered; it may be the payer's all the same."""
    with suppress(NoDestination, NoSender):
        payer = destination_of_payer(movement)
        return replace(
            destination,
            is_payers=(payer.bank_code, payer.account) == (destination.bank_code, destination.account),
        )
    return destination


def order_return(
    movement: BankTransaction, destination: ReturnDestination, *, actor: str, note: str, now: datetime
) -> Return:
    """Order all of a bank transaction back, in the caller's transaction and under the bank transaction's
    lock.

    To an account other than the payer's it may wait for a second person.
    """
    route = accounts.bank(movement.bank)
    payer_return = _create(movement, route, now)
    order = TransferOrder(
        order_id=payer_return.id,
        purpose="return",
        amount=payer_return.amount,
        bank_code=destination.bank_code,
        account=destination.account,
        account_name=destination.account_name,
        charge_id=destination.transaction_id,
    )
    is_held = not destination.is_payers and _needs_approval(
        movement, payer_return, ApprovalKind.RETURN, actor, note, now, destination
    )
    transfers.queue(order, route=route, at=now, merchant_id=_merchant_id(movement), is_held=is_held)
    movement.resolve(ResolutionState.SENDING_BACK, now=now)
    return payer_return


def record_manual_return(
    movement: BankTransaction, *, bank_reference: str, actor: str, note: str, now: datetime
) -> Return:
    """Staff have sent it at the bank, which calls that `bank_reference`. Under the bank transaction's lock.

    It may wait for a second person; until then the bank transaction is on its way back.
    """
    payer_return = _create(
        movement, accounts.bank(movement.bank), now, is_manual=True, bank_reference=bank_reference
    )
    if _needs_approval(movement, payer_return, ApprovalKind.RETURN_BY_HAND, actor, note, now):
        movement.resolve(ResolutionState.SENDING_BACK, now=now)
    else:
        complete_manual_return(movement, payer_return, now=now)
    return payer_return


def complete_manual_return(movement: BankTransaction, payer_return: Return, *, now: datetime) -> None:
    """The caller holds the locks: bank transaction, return."""
    payer_return.transition(ReturnStatus.COMPLETED, completed_at=now)
    movement.resolve(ResolutionState.SENT_BACK, now=now)
    ledger.send_back(subject_id=payer_return.id, amount=payer_return.amount, to=payer_return.route, now=now)


def cancel_pending(movement: BankTransaction, *, now: datetime) -> bool:
    """Take back the order under way, under the bank transaction's lock. False if the bank may have been told.

    Staff may have sent by hand what still waits for a second person.
    """
    payer_return = Return.objects.select_for_update(no_key=True).get(
        movement=movement, status=ReturnStatus.PENDING
    )
    if payer_return.is_manual:
        return False
    try:
        transfers.cancel(payer_return.id, now=now)
    except transfers.AlreadySubmitted:
        return False
    approvals.cancel(payer_return.id, now=now)
    payer_return.transition(ReturnStatus.CANCELED)
    return True


def merchant_of_biller(movement: BankTransaction) -> Merchant | None:
    """Whom it was paid to, by the biller; None where that is nobody."""
    return Merchant.objects.filter(bank=movement.bank, biller_id=movement.biller_id).first()


def _needs_approval(
    movement: BankTransaction,
    payer_return: Return,
    approval_kind: ApprovalKind,
    actor: str,
    note: str,
    now: datetime,
    destination: ReturnDestination = ReturnDestination(),
) -> bool:
    """Whether it waits for a second person."""
    outgoing = approvals.OutgoingMoney(
        kind=approval_kind,
        subject_id=payer_return.id,
        merchant_id=_merchant_id(movement) or None,
        amount=payer_return.amount,
        bank_code=destination.bank_code,
        account=destination.account,
        account_name=destination.account_name,
        note=note,
        requested_by=f"staff:{actor}",
    )
    return approvals.request(outgoing, now=now).is_waiting


def _merchant_id(movement: BankTransaction) -> str:
    payee = merchant_of_biller(movement)
    return payee.id if payee else ""


def _create(movement: BankTransaction, route: str, now: datetime, **fields: object) -> Return:
    payer_return: Return = Return.objects.create(
        id=ids.new("rtn_", now),
        movement=movement,
        amount=movement.amount,
        route=route,
        created_at=now,
        **fields,
    )
    return payer_return
