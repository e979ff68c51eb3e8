"""What acquirers were asked about the charge of a card, and what they said."""

from payments.models import ChargeAnswer, ChargeOutcome
from timeline.entries import CLOCK, EntrySource, PaymentContext, TimelineEntry, TimelineEntryType

CHARGE_OUTCOME_TEXT = {
    ChargeOutcome.SUCCEEDED: "the card was charged",
    ChargeOutcome.DECLINED: "the card was declined",
    ChargeOutcome.REFUSED: "the token is invalid",
    ChargeOutcome.PENDING: "not decided yet",
    ChargeOutcome.UNKNOWN: "no usable answer",
    ChargeOutcome.NOT_SENT: "the charge was never requested",
    ChargeOutcome.MISSING: "no such charge exists",
}


def inquiries(context: PaymentContext) -> EntrySource:
    rows = ChargeAnswer.objects.filter(charge=context.payment.pk).select_related("charge")
    return EntrySource(rows, "created_at", _inquiry_entry)


def _inquiry_entry(response: ChargeAnswer) -> TimelineEntry:
    summary = f"Inquiry about the charge: {CHARGE_OUTCOME_TEXT[ChargeOutcome(response.outcome)]}."
    details = {
        "acquirer": response.charge.acquirer,
        "said": response.outcome,
        "took_ms": response.duration_ms,
    }
    return TimelineEntry(
        response.created_at, TimelineEntryType.CARD_INQUIRY, summary, CLOCK, response.request_id, details
    )
