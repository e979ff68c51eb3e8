"""Slips that payers showed to staff: for the payment, or of its money."""

from django.db.models import Q

from console.timeline.entries import Entry, Moment, Subject, Type
from receipts.models import SlipCheck

OURS = "A slip of its money was shown to staff."
OTHERS = "A slip of other money was shown to staff for it."
UNKNOWN = "A slip was shown to staff for it, and no bank had told of its money."


def checks(subject: Subject) -> Moment:
    rows = SlipCheck.objects.filter(Q(shown_for=subject.payment.pk) | Q(receipt__in=subject.receipt_ids))

    def tell(check: SlipCheck) -> Entry:
        return _told(check, is_ours=check.receipt_id in subject.receipt_ids)

    return Moment(rows, "at", tell)


def _told(check: SlipCheck, *, is_ours: bool) -> Entry:
    """Whose other money it is, and for whose payment it was shown, only staff know."""
    summary = OURS if is_ours else OTHERS if check.receipt_id else UNKNOWN
    return Entry(
        at=check.at,
        type=Type.SLIP_CHECKED,
        summary=summary,
        actor=f"staff:{check.by}",
        request_id=check.request_id,
        details={"receipt_id": check.receipt_id} if is_ours else {},
        internal={
            "other_receipt": "" if is_ours else check.receipt_id or "",
            "sending_bank": check.sending_bank,
            "transaction_id": check.transaction_id,
            "shown_for": check.shown_for or "",
        },
    )
