"""Complete orders to send money, after a notification of the bank or after its answer to staff."""

from collections.abc import Iterable
from datetime import datetime

from django.db import transaction
from django.utils.translation import gettext as _

from approvals import services as approvals
from approvals.models import Approval, ApprovalKind
from banks import ReportedTransfer, TransferResult
from reconciliation.exceptions import return_completion
from reconciliation.models import NotificationResult
from reconciliation.notifications import intake
from refunds import completion
from refunds import services as refunds
from transfers import services as transfers
from transfers.models import Transfer
from transfers.services import TransferHandler
from withdrawals import services as withdrawals

# By the prefix of the order's id.
HANDLERS: dict[str, TransferHandler] = {
    "ref": completion.TRANSFER_HANDLER,
    "wd": withdrawals.TRANSFER_HANDLER,
    "rtn": return_completion.TRANSFER_HANDLER,
}


def handler_of(order_id: str) -> TransferHandler:
    prefix = order_id.partition("_")[0]
    return HANDLERS[prefix]


def lock(order_id: str) -> None:
    """Lock the refund, withdrawal or return of the order; its transfer is locked after it."""
    handler_of(order_id).lock(order_id)


def accept_notification(*, bank: str, body: bytes, notification: ReportedTransfer, now: datetime) -> None:
    """Store the message in one commit and complete its order in the next.

    If the second commit fails, the bank gets an error and sends the message again.
    """
    result = NotificationResult(transfers.classify_notification(notification, bank=bank))
    known_order_id = notification.order_id if transfers.exists(notification.order_id) else None
    intake.store(bank, body, result, None, now, order_id=known_order_id)
    if result == NotificationResult.NEW:
        transfers.apply_notification(notification, handler_of(notification.order_id), now=now)


def complete(order_ids: Iterable[str], *, now: datetime) -> None:
    """Complete orders that the bank reports as reversals. The caller opens the transaction."""
    for order_id in order_ids:
        transfers.complete_by_reversal(order_id, handler_of(order_id), now=now)


@transaction.atomic
def complete_by_staff(order_id: str, result: TransferResult, *, now: datetime) -> bool:
    """Complete an overdue order with the result that the bank gave to staff. Raises transfers.NotOverdue.

    Returns False if a second person must approve it first. A failed order needs this approval: its money
    returns to the merchant, and the bank may still pay it.
    """
    lock(order_id)
    order = transfers.lock_overdue(order_id, now=now)
    if result.status == "failed" and (
        approvals.is_waiting(order_id) or _request_approval(order, now).is_waiting
    ):
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


def cancel_unsent(order_id: str, *, now: datetime) -> None:
    """Cancel an order that surely never reached its bank. Raises transfers.AlreadySubmitted."""
    if not transfers.is_queued(order_id):
        raise transfers.AlreadySubmitted(order_id)
    prefix = order_id.partition("_")[0]
    if prefix == "wd":
        withdrawals.cancel_unsent(withdrawal_id=order_id, now=now)
    elif prefix == "ref":
        refunds.cancel_unsent(refund_id=order_id, now=now)
    else:
        return_completion.cancel_unsent(return_id=order_id, now=now)


def _request_approval(order: Transfer, now: datetime) -> Approval:
    outgoing = approvals.OutgoingMoney(
        kind=ApprovalKind.NEVER_ARRIVED,
        subject_id=order.id,
        merchant_id=order.merchant_id or None,
        amount=order.amount,
        bank_code=order.bank_code,
        account=order.account,
        account_name=order.account_name,
    )
    return approvals.request(outgoing, now=now)
