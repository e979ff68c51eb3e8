"""A bank's word about money that we sent out: a notification, kept and then acted on, or what it told our
staff.
"""

from collections.abc import Iterable
from datetime import datetime

from django.db import transaction

from approvals import services as approvals
from approvals.models import Approval, ApprovalKind
from banks import ReportedTransfer, TransferResult
from reconciliation.exceptions import resolution_records, return_completion
from reconciliation.exceptions.resolution_records import ActionNotAllowed
from reconciliation.models import NotificationResult, Resolution, ResolutionType
from reconciliation.notifications import intake
from refunds import services as refunds
from transfers import services as transfers
from transfers.models import Transfer, TransferContradiction, TransferState
from transfers.services import TransferHandler
from withdrawals import services as withdrawals

# Who is told, by the prefix of the order's id.
HANDLERS: dict[str, TransferHandler] = {
    "ref": refunds.TRANSFER_HANDLER,
    "wd": withdrawals.TRANSFER_HANDLER,
    "rtn": return_completion.HANDLER,
}


def accept_notification(*, bank: str, body: bytes, notification: ReportedTransfer, now: datetime) -> None:
    """Keep the message in one commit and settle what it speaks of in the next.

    What fails after the first is not answered as received, so the bank tells it again.
    """
    result = NotificationResult(transfers.classify_notification(notification, bank=bank))
    known_order_id = notification.order_id if transfers.exists(notification.order_id) else None
    intake.store(bank, body, result, None, now, order_id=known_order_id)
    if result == NotificationResult.NEW:
        transfers.apply_notification(notification, _handler(notification.order_id), now=now)


def complete(order_ids: Iterable[str], *, now: datetime) -> None:
    """Their bank tells that it has done them, in the caller's transaction."""
    for order_id in order_ids:
        transfers.complete_by_reversal(order_id, _handler(order_id), now=now)


@transaction.atomic
def complete_by_staff(order_id: str, result: TransferResult, *, actor: str, now: datetime) -> bool:
    """End an order whose bank is silent, as it told `by` of staff. Raises transfers' NotOverdue.

    False if a second person must approve it: what never arrived goes back, and the bank may pay it later.
    """
    lock(order_id)
    order = transfers.lock_overdue(order_id, now=now)
    if result.status == "failed" and (
        approvals.is_waiting(order_id) or _request_approval(order, actor, now).is_waiting
    ):
        return False
    transfers.complete_manually(order_id, result, _handler(order_id), actor=actor, now=now)
    return True


def complete_as_never_arrived(approval: Approval, *, now: datetime) -> None:
    """A second person approved it. Raises approvals.NotDecidable where the bank was told of it once more."""
    order_id, actor = approval.subject_id, approval.requested_by.removeprefix("staff:")
    try:
        transfers.complete_manually(
            order_id, transfers.NEVER_ARRIVED, _handler(order_id), actor=actor, now=now
        )
    except transfers.NotOverdue:
        raise approvals.NotDecidable("It is completed, or was sent again. Reject it.") from None


def lock(order_id: str) -> None:
    """Lock what the order is for, in the order of all locks."""
    _handler(order_id).lock(order_id)


def cancel_unsent(order_id: str, *, now: datetime) -> None:
    """End an order that surely never reached its bank. Raises transfers.AlreadySubmitted for every other."""
    if not transfers.is_queued(order_id):
        raise transfers.AlreadySubmitted(order_id)
    prefix, _, _ = order_id.partition("_")
    if prefix == "wd":
        withdrawals.end_unsent(withdrawal_id=order_id, now=now)
    elif prefix == "ref":
        refunds.cancel_unsent(refund_id=order_id, now=now)
    else:
        return_completion.give_up(return_id=order_id, now=now)


@transaction.atomic
def mark_returned(contradiction_id: str, *, actor: str, note: str, now: datetime) -> Resolution:
    """The bank never sent what it had reported as sent: whoever it was taken from has the money again.

    A withdrawal's merchant has it at once; the money of a refund or a return waits for staff again. Raises
    ActionNotAllowed, AlreadyResolved.
    """
    contradiction = TransferContradiction.objects.get(pk=contradiction_id)
    if not can_be_marked_returned(contradiction):
        raise ActionNotAllowed(
            "Only an order that succeeded here and failed at the bank can be marked as returned."
        )
    try:
        transfers.mark_returned(
            contradiction.subject_id, _handler(contradiction.subject_id), actor=actor, now=now
        )
    except transfers.NotSucceeded:
        raise ActionNotAllowed("This order is no longer completed here.") from None
    resolution_records.lock_contradiction(contradiction_id)
    return resolution_records.save(
        resolution_records.draft(contradiction_id, ResolutionType.BOOKED_RETURNED, actor, note, now)
    )


def can_be_marked_returned(contradiction: TransferContradiction) -> bool:
    return (contradiction.state, contradiction.answer) == (TransferState.SUCCEEDED, "failed")


def _request_approval(order: Transfer, actor: str, now: datetime) -> Approval:
    outgoing = approvals.OutgoingMoney(
        kind=ApprovalKind.NEVER_ARRIVED,
        subject_id=order.id,
        merchant_id=order.merchant_id or None,
        amount=order.amount,
        bank_code=order.bank_code,
        account=order.account,
        account_name=order.account_name,
        requested_by=f"staff:{actor}",
    )
    return approvals.request(outgoing, now=now)


def _handler(order_id: str) -> TransferHandler:
    prefix, _, _ = order_id.partition("_")
    return HANDLERS[prefix]
