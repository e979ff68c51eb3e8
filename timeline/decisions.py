"""Decisions about the payment's money by staff or by the merchant's policy: resolutions, approvals, slips."""

from typing import Any

from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils.translation import gettext_lazy as _

from approvals.models import Approval, ApprovalKind, ApprovalStatus
from core import money
from payments.models import Payment
from reconciliation.models import (
    BankNotification,
    NotificationResult,
    Resolution,
    ResolutionType,
    SlipCheck,
)
from timeline.entries import EntrySource, PaymentContext, TimelineEntry, TimelineEntryType, public_type
from transfers.models import TransferContradiction

RESOLUTION_TEXT = {
    ResolutionType.ACCEPTED: _("The money is accepted for this payment."),
    ResolutionType.ATTACHED: _("The money is accepted for another payment than the one it referred to."),
    ResolutionType.SENT_BACK: _("The money will be sent back to the payer."),
    ResolutionType.SENT_BACK_BY_HAND: _("The money was sent back to the payer manually at the bank."),
    ResolutionType.EXCESS_SENT_BACK: (
        _("The payment succeeds with its amount, and the excess will be sent back to the payer.")
    ),
    ResolutionType.MERGED: _("Two reports were the same bank transaction: it is counted once."),
    ResolutionType.DISMISSED: _("Dismissed: no action needed."),
    ResolutionType.WRITTEN_OFF: _("Written off: the bank reversed money that had already been sent back."),
    ResolutionType.REOPENED: _("Reopened for staff."),
    ResolutionType.CONFIRMED: (
        _("A second person confirmed money reported only by a statement: it is available now.")
    ),
    ResolutionType.BOOKED_RETURNED: (
        _("The bank never sent the money it had reported as sent: recorded as returned.")
    ),
    ResolutionType.BOOKED_FAILED: (
        _("The acquirer charged another amount and refunded it: recorded as failed.")
    ),
    ResolutionType.KEPT: _("A refund was returned: its money is available again."),
}
DECISION_TEXT = {
    ApprovalStatus.APPROVED: (TimelineEntryType.APPROVAL_APPROVED, _("A second person approved {amount}.")),
    ApprovalStatus.REJECTED: (TimelineEntryType.APPROVAL_REJECTED, _("A second person rejected {amount}.")),
    ApprovalStatus.CANCELED: (
        TimelineEntryType.APPROVAL_CANCELED,
        _("The approval of {amount} was canceled."),
    ),
}
NEVER_ARRIVED_TEXT = {
    ApprovalStatus.APPROVED: (
        _("A second person approved releasing {amount}: the order never arrived at the bank.")
    ),
    ApprovalStatus.REJECTED: _("A second person rejected releasing {amount}."),
    ApprovalStatus.CANCELED: _("The order of {amount} ended before a second person decided."),
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
        RESOLUTION_TEXT[ResolutionType(action.type)],
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
    type_, summary = DECISION_TEXT[ApprovalStatus(row.status)]
    if row.kind == ApprovalKind.NEVER_ARRIVED:
        summary = NEVER_ARRIVED_TEXT[ApprovalStatus(row.status)]
    return TimelineEntry(
        row.decided_at,
        type_,
        summary.format(amount=money.display(row.amount)),
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
