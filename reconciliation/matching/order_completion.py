"""Complete orders to send money, by the bank's answer, its notification, or what it told staff."""

import logging
from collections.abc import Callable
from datetime import datetime

from django.db import transaction
from django.utils.translation import gettext as _

from approvals import services as approvals
from approvals.models import Approval, ApprovalKind
from banks import ReportedTransfer, TransferResult
from ledger import services as ledger
from merchants.models import Merchant
from reconciliation.matching import intake, probable_duplicates, returnable, returns, reversals
from reconciliation.models import BankTransaction, NotificationResult, ResolutionState, Return, ReturnStatus
from refunds import completion, services as refunds
from transfers import services as transfers
from transfers.models import Transfer, TransferState
from transfers.services import TransferHandler
from withdrawals import services as withdrawals

log = logging.getLogger("reconciliation")


class _ReturnHandler:
    """A `transfers.services.TransferHandler` and an `approvals.services.ApprovalHandler` of returns."""

    def lock(self, order_id: str) -> Return:
        bank_transaction, payer_return = lock_return(order_id)
        # If the money comes back, a reversal may take it; its lock comes before those of accounts.
        reversals.find_due(bank_transaction)
        return payer_return

    def is_held(self, transfer: Transfer, *, now: datetime) -> bool:
        """Held while the bank is reversing the money itself, or it would go to a wrong account."""
        bank_transaction, _ = lock_return(transfer.id)
        return not returnable.may_be_sent(bank_transaction, transfer)

    def on_submitted(self, order_id: str, *, now: datetime) -> None:
        """Publish no event, because merchants do not see returns."""

    def on_completed(self, order_id: str, result: TransferResult, *, now: datetime) -> None:
        bank_transaction, payer_return = lock_return(order_id)
        approvals.cancel(order_id, now=now)  # a request to end the order as never arrived
        if result.status == "succeeded":
            returns.complete(bank_transaction, payer_return, now=now, reference=result.reference)
            return
        if result.status == "failed":
            payer_return.transition(ReturnStatus.FAILED, failure_code=result.failure_code)
        else:
            payer_return.set_fields(returned_at=now)
            ledger.hold({payer_return.id: payer_return.amount}, source=payer_return.route, now=now)
            log.warning("the money of return %s came back and waits for staff", payer_return.id)
        reopen(bank_transaction, now)

    def approve(self, approval: Approval, *, now: datetime) -> None:
        """Raises NotDecidable for what the bank has reported since the request."""
        bank_transaction, payer_return = lock_return(approval.subject_id)
        if payer_return.is_manual:
            returns.complete(bank_transaction, payer_return, now=now)
            return
        if returnable.is_being_reversed(bank_transaction):
            text = _(
                "The bank is reversing money of this transaction: ask the bank how much is left, or "
                "reject it."
            )
            raise approvals.NotDecidable(text)
        if others := probable_duplicates.probable_ids(bank_transaction):
            text = _("It is probably a duplicate of %(other)s. Reject it.")
            raise approvals.NotDecidable(text % {"other": others[0]})
        transfers.release(payer_return.id, now=now)

    def reject(self, approval: Approval, *, now: datetime) -> None:
        bank_transaction, payer_return = lock_return(approval.subject_id)
        if not payer_return.is_manual:
            transfers.cancel(payer_return.id, now=now)
        payer_return.transition(ReturnStatus.CANCELED)
        reopen(bank_transaction, now)


RETURN_HANDLER = _ReturnHandler()
# By the prefix of the order's id.
HANDLERS: dict[str, TransferHandler] = {
    "ref": completion.TRANSFER_HANDLER,
    "wd": withdrawals.TRANSFER_HANDLER,
    "rtn": RETURN_HANDLER,
}


def handler_of(order_id: str) -> TransferHandler:
    return HANDLERS[order_id.partition("_")[0]]


def lock_return(order_id: str) -> tuple[BankTransaction, Return]:
    """Lock payment, bank transaction and return. A reversal of an excess changes the payment too."""
    bank_transaction_id = Return.objects.values_list("bank_transaction", flat=True).get(pk=order_id)
    bank_transaction = BankTransaction.objects.locked_with_payment(bank_transaction_id)
    return bank_transaction, Return.objects.select_for_update(no_key=True).get(pk=order_id)


def reopen(bank_transaction: BankTransaction, now: datetime) -> None:
    """Make the money an exception again, unless its bank reversed it meanwhile: then apply that reversal."""
    returns.held_part(bank_transaction).resolve(ResolutionState.OPEN, now=now)
    payment = bank_transaction.payment if bank_transaction.is_credited else None
    if reversal := reversals.find_due(bank_transaction):
        reversals.apply(reversal, bank_transaction, payment, now=now)


def run_due_returns(*, now: Callable[[], datetime]) -> None:
    """Send due returns, and ask about those without an answer."""
    transfers.run_due("return", RETURN_HANDLER, now=now)


def accept_notification(*, bank: str, body: bytes, notification: ReportedTransfer, now: datetime) -> None:
    """Store the message, and complete its order in a second commit. If that fails, the bank repeats it."""
    result = NotificationResult(transfers.classify_notification(notification, bank=bank))
    known_order_id = notification.order_id if transfers.exists(notification.order_id) else None
    senders = Transfer.objects.filter(pk=known_order_id).values("merchant_id")
    if Merchant.objects.filter(pk__in=senders, moved_at__isnull=False).exists():
        result = NotificationResult.MOVED
    intake.store(bank, body, result, now, order_id=known_order_id)
    if result == NotificationResult.NEW:
        transfers.apply_notification(notification, handler_of(notification.order_id), now=now)


@transaction.atomic
def complete_by_staff(order_id: str, result: TransferResult, *, now: datetime) -> bool:
    """Complete an overdue order with the result that the bank gave to staff. Raises transfers.NotOverdue.

    Returns False if a second person must approve it first. A failed order needs this approval: its money
    returns to the merchant, and the bank may still pay it.
    """
    handler_of(order_id).lock(order_id)
    order = transfers.lock_overdue(order_id, now=now)
    if result.status == "failed":
        merchant_id, kind = order.merchant_id or None, ApprovalKind.NEVER_ARRIVED
        item = approvals.OutgoingMoney.of(order.order, kind, merchant_id, account_digest="")
        if approvals.is_waiting(order_id) or approvals.request(item, now=now).is_waiting:
            return False
    transfers.complete_manually(order_id, result, handler_of(order_id), now=now)
    return True


def complete_as_never_arrived(approval: Approval, *, now: datetime) -> None:
    """Fail the order after approval. Raises approvals.NotDecidable if it ended or was sent again."""
    order_id = approval.subject_id
    try:
        transfers.complete_manually(order_id, transfers.NEVER_ARRIVED, handler_of(order_id), now=now)
    except transfers.NotOverdue:
        raise approvals.NotDecidable(_("It is completed, or was sent again. Reject it.")) from None


@transaction.atomic
def cancel_unsent(order_id: str, *, now: datetime) -> None:
    """Cancel an order that never reached its bank; a return's money waits again. Raises AlreadySubmitted."""
    if not transfers.exists(order_id, TransferState.QUEUED):
        raise transfers.AlreadySubmitted(order_id)
    if order_id.startswith("wd_"):
        withdrawals.cancel_unsent(withdrawal_id=order_id, now=now)
    elif order_id.startswith("ref_"):
        refunds.cancel_unsent(refund_id=order_id, now=now)
    else:
        bank_transaction, payer_return = lock_return(order_id)
        is_pending = payer_return.status == ReturnStatus.PENDING
        if not (is_pending and returns.cancel_pending(bank_transaction, now=now)):
            raise transfers.AlreadySubmitted(order_id)
        reopen(bank_transaction, now)
