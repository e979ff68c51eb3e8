"""Decisions about the payment's money by staff or by the merchant's policy: resolutions, approvals, slips."""

from functools import partial
from typing import Any

from django.db.models import Exists, OuterRef, Q

from approvals.models import Approval, ApprovalStatus
from audit_trail.note_models import Note
from audit_trail.notes.acts import shown_text
from core import money
from payments.models import Payment
from reconciliation.exceptions import explanations
from reconciliation.models import BankNotification, NotificationResult, Resolution, ResolutionType, SlipCheck
from timeline import explanations as texts
from timeline.entries import STAFF_NOTE, EntrySource, PaymentContext, TimelineEntry, TimelineEntryType
from transfers.models import TransferContradiction

ID_NAMES = {"ref": "refund_id", "btx": "bank_transaction_id", "rtn": "return_id"}


def resolutions(context: PaymentContext) -> list[EntrySource]:
    """Slips that were shown for the payment, or are of its money; and what was decided about its money."""
    payment, orders = context.payment, context.order_ids
    bank_transactions = Q(bank_transaction__in=context.bank_transaction_ids)
    slips = SlipCheck.objects.filter(Q(claimed_payment_id=payment.pk) | bank_transactions)
    # Notifications that contradict earlier ones about the same money or order.
    conflicts = BankNotification.objects.filter(
        bank_transactions | Q(order_id__in=orders), result=NotificationResult.CONFLICT
    )
    # Of a transfer or of the card charge.
    contradictions = TransferContradiction.objects.filter(subject_id__in=[payment.pk, *orders])
    ours = Payment.objects.filter(pk=OuterRef("payment_id"), merchant=payment.merchant_id)
    decided = Resolution.objects.annotate(is_ours=Exists(ours))
    subjects = (
        Q(payment_id=payment.pk) | Q(subject_id__in=[*context.bank_transaction_ids, *context.refund_ids]),
        Q(subject_id__in=conflicts.values("pk")),
        Q(subject_id__in=contradictions.values("pk")),
    )
    return [
        EntrySource(slips, "checked_at", partial(_slip, context)),
        *(EntrySource(decided.filter(about), "created_at", _resolution) for about in subjects),
    ]


def approvals(context: PaymentContext) -> list[EntrySource]:
    rows = Approval.objects.filter(subject_id__in=[*context.order_ids, *context.bank_transaction_ids])
    requested = rows.exclude(status=ApprovalStatus.WITHIN_LIMITS)
    return [
        EntrySource(requested, "requested_at", _approval_requested),
        EntrySource(rows.filter(decided_at__isnull=False), "decided_at", _approval_decided),
    ]


def notes(context: PaymentContext) -> list[EntrySource]:
    """What staff wrote about the payment, its money, refunds and returns."""
    ours = (context.payment.pk, *context.order_ids, *context.bank_transaction_ids, *context.unmatched_ids)
    return [EntrySource(Note.objects.about(ours), "created_at", _note)] if context.with_notes else []


def _note(note: Any) -> TimelineEntry:
    return TimelineEntry.of(note, STAFF_NOTE, shown_text(note), {}, internal={"handed_to": note.to})


def _resolution(action: Any) -> TimelineEntry:
    """Only staff see the payment if it belongs to another merchant."""
    by = {"policy": "policy", "key": "merchant"}.get(action.actor.partition(":")[0], "staff")
    details = {"subject_id": action.subject_id}
    if action.payment_id and action.is_ours:
        details["payment_id"] = action.payment_id
    type_ = TimelineEntryType(f"{by}.{action.type}")
    summary = explanations.RESOLUTIONS[ResolutionType(action.type)]
    internal = {"why": action.note, "payment_id": action.payment_id or ""}
    return TimelineEntry.of(action, type_, summary, details, internal=internal)


def _approval_requested(row: Approval) -> TimelineEntry:
    words = {"amount": money.display(row.amount), "reason": row.get_reason_display()}
    summary = texts.APPROVAL_REQUESTED % words
    details = _approval_details(row) | {"reason": row.reason}
    type_ = TimelineEntryType.APPROVAL_REQUESTED
    return TimelineEntry.of(row, type_, summary, details, actor=row.requested_by)


def _approval_decided(row: Approval) -> TimelineEntry:
    words = {"amount": money.display(row.amount), "kind": row.get_kind_display().lower()}
    return TimelineEntry.of(
        row,
        TimelineEntryType(f"approval.{row.status}"),
        texts.DECIDED[ApprovalStatus(row.status)].format(**words),
        _approval_details(row),
        actor=row.decided_by,
        request_id="",
        internal={"why": row.decision_note},
    )


def _approval_details(row: Approval) -> dict[str, object]:
    return {ID_NAMES[row.subject_id.partition("_")[0]]: row.subject_id, "amount": row.amount}


def _slip(context: PaymentContext, check: SlipCheck) -> TimelineEntry:
    """Only staff see other money, and the payment that the slip was shown for."""
    is_ours = check.bank_transaction_id in context.bank_transaction_ids
    if is_ours:
        summary = texts.SLIP
    else:
        summary = texts.SLIP_OF_OTHER_MONEY if check.bank_transaction_id else texts.SLIP_OF_NO_MONEY
    details = {"bank_transaction_id": check.bank_transaction_id} if is_ours else {}
    internal = {
        "other_bank_transaction": "" if is_ours else check.bank_transaction_id or "",
        "sending_bank": check.sending_bank,
        "transaction_id": check.transaction_id,
        "shown_for": check.claimed_payment_id or "",
    }
    by = "staff" if check.merchant_id is None else "merchant"
    type_ = TimelineEntryType(f"{by}.slip_checked")
    return TimelineEntry.of(check, type_, summary, details, internal=internal)
