"""Orders to send money, for refunds and for money that did not fit: what their bank says unasked."""

from console.timeline.entries import Entry, Moment, Subject, Type
from receipts.models import Notice, Verdict

SUMMARIES = {
    Verdict.NEW: "The bank says what became of an order.",
    Verdict.REPEAT: "The bank says the same of an order again.",
    Verdict.CONFLICT: "The bank says of an order what contradicts what is known of it.",
}


def notices(subject: Subject) -> Moment:
    told = Notice.objects.filter(order_id__in=subject.order_ids)
    return Moment(told.defer("body_sealed"), "received_at", _noticed)


def _noticed(notice: Notice) -> Entry:
    summary, actor = SUMMARIES[Verdict(notice.verdict)], f"bank:{notice.bank}"
    details = {"verdict": notice.verdict, "source": notice.source, "order_id": notice.order_id}
    return Entry(notice.received_at, Type.NOTICE, summary, actor, notice.request_id, details)
