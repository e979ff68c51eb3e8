"""Outgoing money of the payment that a second person had to approve: who asked, and what was decided."""

from django.db.models import QuerySet

from approvals.models import Approval, ApprovalKind, ApprovalStatus
from core import money
from timeline.entries import EntrySource, PaymentContext, TimelineEntry, TimelineEntryType

ID_NAMES = {"ref": "refund_id", "rcp": "receipt_id", "rtn": "return_id"}
DECISION_TEXT = {
    ApprovalStatus.APPROVED: (TimelineEntryType.APPROVAL_APPROVED, "A second person approved {amount}."),
    ApprovalStatus.REJECTED: (TimelineEntryType.APPROVAL_REJECTED, "A second person rejected {amount}."),
    ApprovalStatus.CANCELED: (TimelineEntryType.APPROVAL_CANCELED, "The approval of {amount} was canceled."),
}
NEVER_ARRIVED_TEXT = {
    ApprovalStatus.APPROVED: (
        "A second person approved releasing {amount}: the order never arrived at the bank."
    ),
    ApprovalStatus.REJECTED: "A second person rejected releasing {amount}.",
    ApprovalStatus.CANCELED: "The order of {amount} ended before a second person decided.",
}


def requested(context: PaymentContext) -> EntrySource:
    return EntrySource(
        _approvals(context).exclude(status=ApprovalStatus.WITHIN_LIMITS), "requested_at", _requested_entry
    )


def decided(context: PaymentContext) -> EntrySource:
    return EntrySource(_approvals(context).filter(decided_at__isnull=False), "decided_at", _decided_entry)


def _approvals(context: PaymentContext) -> QuerySet[Approval]:
    found: QuerySet[Approval] = Approval.objects.filter(
        subject_id__in=[*context.order_ids, *context.movement_ids]
    )
    return found


def _requested_entry(row: Approval) -> TimelineEntry:
    summary = f"{money.display(row.amount)} need approval by a second person: {row.get_reason_display()}."
    details = _details(row) | {"reason": row.reason}
    return TimelineEntry(
        row.requested_at,
        TimelineEntryType.APPROVAL_REQUESTED,
        summary,
        row.requested_by,
        row.request_id,
        details,
    )


def _decided_entry(row: Approval) -> TimelineEntry:
    assert row.decided_at is not None, "the query says so"
    type_, summary = DECISION_TEXT[ApprovalStatus(row.status)]
    if row.kind == ApprovalKind.NEVER_ARRIVED:
        summary = NEVER_ARRIVED_TEXT[ApprovalStatus(row.status)]
    return TimelineEntry(
        at=row.decided_at,
        type=type_,
        summary=summary.format(amount=money.display(row.amount)),
        actor=row.decided_by,
        details=_details(row),
        internal={"why": row.decision_note},
    )


def _details(row: Approval) -> dict[str, object]:
    return {ID_NAMES[row.subject_id.partition("_")[0]]: row.subject_id, "amount": row.amount}
