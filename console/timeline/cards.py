"""What acquirers were asked about the charge of a card, and what they said."""

from console.timeline.entries import CLOCK, Entry, Moment, Subject, Type
from payments.models import ChargeAnswer, ChargeSaid

ANSWERS = {
    ChargeSaid.SUCCEEDED: "the card was charged",
    ChargeSaid.DECLINED: "the card was declined",
    ChargeSaid.REFUSED: "the token is not good",
    ChargeSaid.PENDING: "it does not know yet",
    ChargeSaid.UNKNOWN: "nothing that can be understood, or nothing at all",
    ChargeSaid.NOT_SENT: "it was never asked for the charge",
    ChargeSaid.MISSING: "it knows no such charge",
}


def inquiries(subject: Subject) -> Moment:
    rows = ChargeAnswer.objects.filter(charge=subject.payment.pk).select_related("charge")
    return Moment(rows, "at", _answered)


def _answered(answer: ChargeAnswer) -> Entry:
    summary = f"Asked about the charge, the acquirer says: {ANSWERS[ChargeSaid(answer.said)]}."
    details = {"acquirer": answer.charge.acquirer, "said": answer.said, "took_ms": answer.took_ms}
    return Entry(answer.at, Type.CARD_INQUIRY, summary, CLOCK, answer.request_id, details)
