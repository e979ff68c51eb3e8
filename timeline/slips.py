"""Slips that payers showed to staff: for the payment, or of its money."""

from django.db.models import Q

from reconciliation.models import SlipCheck
from timeline.entries import EntrySource, PaymentContext, TimelineEntry, TimelineEntryType

OWN_SLIP = "Staff checked a slip of this payment's money."
OTHER_SLIP = "Staff checked a slip for this payment that belongs to other money."
UNKNOWN_SLIP = "Staff checked a slip for this payment that no bank has reported."


def checks(context: PaymentContext) -> EntrySource:
    rows = SlipCheck.objects.filter(
        Q(claimed_payment_id=context.payment.pk) | Q(movement__in=context.movement_ids)
    )

    def to_entry(check: SlipCheck) -> TimelineEntry:
        return _slip_entry(check, is_ours=check.movement_id in context.movement_ids)

    return EntrySource(rows, "checked_at", to_entry)


def _slip_entry(check: SlipCheck, *, is_ours: bool) -> TimelineEntry:
    """Whose other money it is, and for whose payment it was shown, only staff know."""
    summary = OWN_SLIP if is_ours else OTHER_SLIP if check.movement_id else UNKNOWN_SLIP
    return TimelineEntry(
        at=check.checked_at,
        type=TimelineEntryType.SLIP_CHECKED,
        summary=summary,
        actor=f"staff:{check.actor}",
        request_id=check.request_id,
        details={"receipt_id": check.movement_id} if is_ours else {},
        internal={
            "other_receipt": "" if is_ours else check.movement_id or "",
            "sending_bank": check.sending_bank,
            "transaction_id": check.transaction_id,
            "shown_for": check.claimed_payment_id or "",
        },
    )
