"""Returns: held money goes back to its payer, by an order to the bank or by staff at the bank.

The held money is all of a bank transaction, or the excess of one that was accepted.

`reconciliation.matching.order_completion` handles the results of these orders.
"""

from contextlib import suppress
from datetime import datetime

from django.utils.translation import gettext_lazy as _

import banks
from approvals import services as approvals
from approvals.models import ApprovalKind
from core import ids
from core.thai import thaibanks
from ledger import accounts, services as ledger
from merchants.errors import BankNotConfigured
from merchants.models import Merchant
from reconciliation.matching.refusals import NoWayBack
from reconciliation.models import (
    BankTransaction,
    BankTransactionKind,
    Excess,
    MatchResult,
    ResolutionState,
    Return,
    ReturnStatus,
)
from refunds.destinations import UNKNOWN_NAME, Destination
from transfers import services as transfers

NO_SENDER = _(
    "Money cannot be sent by this bank from here: send it at the bank, then record a manual return."
)


def find_excess(bank_transaction: BankTransaction) -> Excess | None:
    """The excess of an accepted over-payment. The lock of the bank transaction is its lock too."""
    can_have_one = (
        bank_transaction.resolution_state == ResolutionState.ACCEPTED
        and bank_transaction.match_result == MatchResult.AMOUNT_MISMATCH
        and bank_transaction.kind == BankTransactionKind.CREDIT
    )
    return Excess.objects.filter(bank_transaction=bank_transaction).first() if can_have_one else None


def find_open_excess(bank_transaction: BankTransaction) -> Excess | None:
    """The excess if it waits for a decision of staff."""
    excess = find_excess(bank_transaction)
    return excess if excess is not None and excess.resolution_state == ResolutionState.OPEN else None


def held_part(bank_transaction: BankTransaction) -> BankTransaction | Excess:
    """What is or was held for staff: the excess if there is one, else all of the bank transaction."""
    return find_excess(bank_transaction) or bank_transaction


def destination_of_payer(bank_transaction: BankTransaction, *, of_excess: bool = False) -> Destination:
    """The payer's account as the bank reported it, or the payment to void at a bank that only voids.

    Raises NoWayBack, also if the bank never reported the id to void. An excess cannot be voided: a void takes
    back the whole payment. `of_excess`: of the excess that the caller is about to make.
    """
    if banks.is_void_only(accounts.bank(bank_transaction.bank)):
        if not bank_transaction.id_at_bank or of_excess or find_excess(bank_transaction) is not None:
            raise NoWayBack(NO_SENDER)
        return Destination(charge_id=bank_transaction.id_at_bank)
    payer = bank_transaction.payer
    try:
        thaibanks.check_account(payer.bank_code, payer.account)
    except ValueError:
        raise NoWayBack(_("The bank did not report the payer's account: enter one.")) from None
    return Destination(payer.bank_code, payer.account, payer.name or UNKNOWN_NAME)


def find_destination_of_excess(bank_transaction: BankTransaction) -> Destination | None:
    """The payer's account if it is known and this bank can send a part to it."""
    try:
        destination = destination_of_payer(bank_transaction, of_excess=True)
        check_bank_can_send(bank_transaction, destination)
    except NoWayBack:
        return None
    return destination


def check_bank_can_send(bank_transaction: BankTransaction, destination: Destination) -> None:
    """Raises NoWayBack if this bank cannot send, or not to such a destination."""
    route, is_void = accounts.bank(bank_transaction.bank), bool(destination.charge_id)
    try:
        transfers.checked_route(route, _merchant_id(bank_transaction), is_void=is_void)
    except BankNotConfigured:
        raise NoWayBack(NO_SENDER) from None


def order_return(
    bank_transaction: BankTransaction, destination: Destination, *, note: str, now: datetime
) -> Return:
    """Order a return, which may wait for a second person. The caller holds the lock of the money."""
    route = accounts.bank(bank_transaction.bank)
    order = destination.order(ids.new("rtn_", now), "return", held_part(bank_transaction).amount)
    merchant_id, sealed, held = _merchant_id(bank_transaction), transfers.seal_account(order), list[str]()
    payer_return = _create(bank_transaction, order.order_id, now, account_digest=sealed.digest)
    if not (destination.charge_id or is_payers(bank_transaction, order.bank_code, order.account)):
        item = approvals.OutgoingMoney.of(
            order, ApprovalKind.RETURN, merchant_id or None, account_digest=sealed.digest, note=note
        )
        held = [order.order_id] if approvals.request(item, now=now).is_waiting else []
    sealed_accounts = {order.order_id: sealed}
    transfers.queue(order, accounts=sealed_accounts, route=route, at=now, merchant_id=merchant_id, held=held)
    held_part(bank_transaction).resolve(ResolutionState.SENDING_BACK, now=now)
    return payer_return


def record_manual_return(
    bank_transaction: BankTransaction, *, bank_reference: str, note: str, now: datetime
) -> Return:
    """Record what staff sent, which may wait for a second person. The caller holds the lock of the money."""
    payer_return = _create(
        bank_transaction, ids.new("rtn_", now), now, is_manual=True, bank_reference=bank_reference
    )
    payee, amount = _merchant_id(bank_transaction) or None, payer_return.amount
    item = approvals.OutgoingMoney(ApprovalKind.RETURN_BY_HAND, payer_return.id, payee, amount, note=note)
    if approvals.request(item, now=now).is_waiting:
        held_part(bank_transaction).resolve(ResolutionState.SENDING_BACK, now=now)
    else:
        complete(bank_transaction, payer_return, now=now)
    return payer_return


def complete(
    bank_transaction: BankTransaction, payer_return: Return, *, now: datetime, reference: str | None = None
) -> None:
    """The caller holds the locks: bank transaction, return. reference: of the bank, for an order."""
    known = {} if reference is None else {"bank_reference": reference}
    payer_return.transition(ReturnStatus.COMPLETED, completed_at=now, **known)
    held_part(bank_transaction).resolve(ResolutionState.SENT_BACK, now=now)
    ledger.send_back(subject_id=payer_return.id, amount=payer_return.amount, to=payer_return.route, now=now)


def cancel_pending(bank_transaction: BankTransaction, *, now: datetime) -> bool:
    """Cancel a pending return. The caller holds the lock of the bank transaction.

    Returns False if the bank may have the order, and for a manual return, which staff may have sent already.
    """
    payer_return = Return.objects.select_for_update(no_key=True).get(
        bank_transaction=bank_transaction, status=ReturnStatus.PENDING
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


def merchant_of_biller(bank_transaction: BankTransaction) -> Merchant | None:
    """The merchant that the biller id belongs to."""
    return Merchant.objects.of_biller(bank_transaction.bank, bank_transaction.biller_id)


def is_payers(bank_transaction: BankTransaction, bank_code: str, account: str) -> bool:
    """Whether the money came from this account, by the bank's record."""
    with suppress(NoWayBack):
        payer = destination_of_payer(bank_transaction)
        return (payer.bank_code, payer.account) == (bank_code, account)
    return False


def _merchant_id(bank_transaction: BankTransaction) -> str:
    payee = merchant_of_biller(bank_transaction)
    return payee.id if payee else ""


def _create(bank_transaction: BankTransaction, return_id: str, now: datetime, **fields: object) -> Return:
    payer_return: Return = Return.objects.create(
        id=return_id,
        bank_transaction=bank_transaction,
        amount=held_part(bank_transaction).amount,
        route=accounts.bank(bank_transaction.bank),
        created_at=now,
        **fields,
    )
    return payer_return
