"""Decisions about the payment's money by staff or by the merchant's policy: resolutions, approvals, slips."""

from typing import Any

from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils.translation import gettext_lazy as _

from approvals.models import Approval, ApprovalStatus
from core import money
from payments.models import Payment
from reconciliation.exceptions import explanations
from reconciliation.models import (
    BankNotification,
    NotificationResult,
    Resolution,
    ResolutionType,
    SlipCheck,
)
from timeline.entries import EntrySource, PaymentContext, TimelineEntry, TimelineEntryType, public_type
from transfers.models import TransferContradiction

DECISIONS = {
    ApprovalStatus.APPROVED: _("A second person approved {amount}: {kind}."),
    ApprovalStatus.REJECTED: _("A second person rejected {amount}: {kind}."),
    ApprovalStatus.CANCELED: _("The approval of {amount} was canceled: {kind}."),
}
ID_NAMES = {"ref": "refund_id", "rcp": "receipt_id", "rtn": "return_id"}


def resolutions(context: PaymentContext) -> EntrySource:
    about = Q(payment_id=context.payment.pk) | Q(subject_id__in=[*context.movement_ids, *context.refund_ids])
    return _resolution_source(context, Resolution.objects.filter(about))


def dismissals(context: PaymentContext) -> EntrySource:
    """Resolutions of notifications that contradict earlier ones about the same money or order."""
    ours = Q(movement__in=context.movement_ids) | Q(order_id__in=context.order_ids)
    conflicts = BankNotification.objects.filter(ours, result=NotificationResult.CONFLICT)
    return _resolution_source(context, Resolution.objects.filter(subject_id__in=conflicts.values("pk")))


def contradictions(context: PaymentContext) -> EntrySource:
    """Resolutions of contradictions about a transfer or the card charge."""
    found = TransferContradiction.objects.filter(subject_id__in=[context.payment.pk, *context.order_ids])
    return _resolution_source(context, Resolution.objects.filter(subject_id__in=found.values("pk")))


def approvals_requested(context: PaymentContext) -> EntrySource:
    rows = _approvals(context).exclude(status=ApprovalStatus.WITHIN_LIMITS)
    return EntrySource(rows, "requested_at", _approval_requested_entry)


def approvals_decided(context: PaymentContext) -> EntrySource:
    rows = _approvals(context).filter(decided_at__isnull=False)
    return EntrySource(rows, "decided_at", _approval_decided_entry)


def slip_checks(context: PaymentContext) -> EntrySource:
    """Slips that were shown for the payment, and slips of its money."""
    rows = SlipCheck.objects.filter(
        Q(claimed_payment_id=context.payment.pk) | Q(movement__in=context.movement_ids)
    )

    def to_entry(check: SlipCheck) -> TimelineEntry:
        return _slip_entry(check, is_ours=check.movement_id in context.movement_ids)

    return EntrySource(rows, "checked_at", to_entry)


def _resolution_source(context: PaymentContext, resolutions: QuerySet[Resolution]) -> EntrySource:
    ours = Payment.objects.filter(pk=OuterRef("payment_id"), merchant=context.payment.merchant_id)
    return EntrySource(resolutions.annotate(is_ours=Exists(ours)), "created_at", _resolution_entry)


def _resolution_entry(action: Any) -> TimelineEntry:
    """Only staff see the payment if it belongs to another merchant."""
    by = {"policy": "policy", "key": "merchant"}.get(action.actor.partition(":")[0], "staff")
    details = {"subject_id": action.subject_id}
    if action.payment_id and action.is_ours:
        details["payment_id"] = action.payment_id
    return TimelineEntry(
        action.created_at,
        public_type(by, action.type),
        explanations.RESOLUTIONS[ResolutionType(action.type)],
        action.actor,
        action.request_id,
        details,
        internal={"why": action.note, "payment_id": action.payment_id or ""},
    )


def _approvals(context: PaymentContext) -> QuerySet[Approval]:
    subject_ids = [*context.order_ids, *context.movement_ids]
    found: QuerySet[Approval] = Approval.objects.filter(subject_id__in=subject_ids)
    return found


def _approval_requested_entry(row: Approval) -> TimelineEntry:
    return TimelineEntry(
        row.requested_at,
        TimelineEntryType.APPROVAL_REQUESTED,
        _("%(amount)s need approval by a second person: %(reason)s.")
        % {"amount": money.display(row.amount), "reason": row.get_reason_display()},
        row.requested_by,
        row.request_id,
        _approval_details(row) | {"reason": row.reason},
    )


def _approval_decided_entry(row: Approval) -> TimelineEntry:
    assert row.decided_at is not None, "the query says so"
    return TimelineEntry(
        row.decided_at,
        TimelineEntryType(f"approval.{row.status}"),
        DECISIONS[ApprovalStatus(row.status)].format(
            amount=money.display(row.amount), kind=row.get_kind_display().lower()
        ),
        row.decided_by,
        details=_approval_details(row),
        internal={"why": row.decision_note},
    )


def _approval_details(row: Approval) -> dict[str, object]:
    return {ID_NAMES[row.subject_id.partition("_")[0]]: row.subject_id, "amount": row.amount}


def _slip_entry(check: SlipCheck, *, is_ours: bool) -> TimelineEntry:
    """Only staff see other money, and the payment that the slip was shown for."""
    if is_ours:
        summary = _("Staff checked a slip of this payment's money.")
    elif check.movement_id:
        summary = _("Staff checked a slip for this payment that belongs to other money.")
    else:
        summary = _("Staff checked a slip for this payment that no bank has reported.")
    return TimelineEntry(
        check.checked_at,
        TimelineEntryType.SLIP_CHECKED,
        summary,
        check.actor,
        check.request_id,
        {"receipt_id": check.movement_id} if is_ours else {},
        internal={
            "other_receipt": "" if is_ours else check.movement_id or "",
            "sending_bank": check.sending_bank,
            "transaction_id": check.transaction_id,
            "shown_for": check.claimed_payment_id or "",
        },
    )
