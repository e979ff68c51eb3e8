"""Outgoing money of the payment that a second person had to approve: who asked, and what was decided."""

from django.db.models import QuerySet

from approvals.models import Approval, Kind, Status
from console.timeline.entries import Entry, Moment, Subject, Type
from core import money

NAMES = {"ref": "refund_id", "rcp": "receipt_id", "rtn": "return_id"}
DECISIONS = {
    Status.APPROVED: (Type.APPROVAL_APPROVED, "A second person approved that {amount} go out."),
    Status.REJECTED: (Type.APPROVAL_REJECTED, "A second person rejected that {amount} go out."),
    Status.CANCELED: (Type.APPROVAL_CANCELED, "It is not decided any more whether {amount} go out."),
}
NEVER_ARRIVED = {
    Status.APPROVED: "A second person approved that {amount} be given back: the bank never had the order.",
    Status.REJECTED: "A second person did not agree that the bank never had the order of {amount}.",
    Status.CANCELED: "The order of {amount} ended before a second person decided about it.",
}


def requested(subject: Subject) -> Moment:
    return Moment(_of(subject).exclude(status=Status.WITHIN_LIMITS), "requested_at", _requested)


def decided(subject: Subject) -> Moment:
    return Moment(_of(subject).filter(decided_at__isnull=False), "decided_at", _decided)


def _of(subject: Subject) -> QuerySet[Approval]:
    found: QuerySet[Approval] = Approval.objects.filter(
        subject_id__in=[*subject.order_ids, *subject.receipt_ids]
    )
    return found


def _requested(row: Approval) -> Entry:
    summary = f"{money.display(row.amount)} wait for a second person: {row.get_reason_display()}."
    details = _details(row) | {"reason": row.reason}
    return Entry(
        row.requested_at, Type.APPROVAL_REQUESTED, summary, row.requested_by, row.request_id, details
    )


def _decided(row: Approval) -> Entry:
    assert row.decided_at is not None, "the query says so"
    type_, summary = DECISIONS[Status(row.status)]
    if row.kind == Kind.NEVER_ARRIVED:
        summary = NEVER_ARRIVED[Status(row.status)]
    return Entry(
        at=row.decided_at,
        type=type_,
        summary=summary.format(amount=money.display(row.amount)),
        actor=row.decided_by,
        details=_details(row),
        internal={"why": row.why},
    )


def _details(row: Approval) -> dict[str, object]:
    return {NAMES[row.subject_id.partition("_")[0]]: row.subject_id, "amount": row.amount}
