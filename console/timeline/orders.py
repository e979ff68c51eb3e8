"""Orders to send money, for refunds and for what did not fit: each telling, each question, what banks say."""

from typing import Any

from django.db.models import OuterRef, QuerySet, Subquery

from console.timeline.entries import Entry, Moment, Subject, Type
from core import money
from receipts.models import Notice, Verdict
from transfers.models import Contradiction, Step, Transfer, What

STEPS = {
    What.TOLD: "The bank is told to send {amount}.",
    What.UNREACHED: "The bank could not be reached: the order never arrived there, and is sent again.",
    What.INQUIRY: "Asked what became of {amount}, the bank says: {said}.",
}
SAID = {
    "succeeded": "they arrived",
    "failed": "they never left",
    "returned": "they came back",
    "processing": "they are on their way",
    "unknown": "nothing that can be understood, or nothing at all",
    "not_sent": "nothing, for it cannot be reached",
}
NOTICES = {
    Verdict.NEW: "The bank says what became of an order.",
    Verdict.REPEAT: "The bank says the same of an order again.",
    Verdict.CONFLICT: "The bank says of an order what contradicts what is known of it.",
}


def told(subject: Subject) -> Moment:
    """Again where the bank could not be reached the time before."""
    return _steps(subject, What.TOLD)


def unreached(subject: Subject) -> Moment:
    return _steps(subject, What.UNREACHED)


def inquiries(subject: Subject) -> Moment:
    return _steps(subject, What.INQUIRY)


def notices(subject: Subject) -> Moment:
    of = Transfer.objects.filter(pk=OuterRef("order_id"))
    said = Notice.objects.filter(order_id__in=subject.order_ids).annotate(
        purpose=Subquery(of.values("purpose")[:1])
    )
    return Moment(said.defer("body_sealed"), "received_at", _noticed)


def contradictions(subject: Subject) -> Moment:
    """Also of a card charge."""
    ids = [subject.payment.pk, *subject.order_ids]
    return Moment(Contradiction.objects.filter(subject_id__in=ids), "at", _contradicted)


def with_step(rows: QuerySet[Any], what: What) -> QuerySet[Any]:
    """With the last such step of the transfer of the same id: `stepped_at`, and who caused it."""
    of = Step.objects.filter(transfer=OuterRef("pk"), what=what).order_by("-at")
    return _annotated(rows, of, "stepped_at")


def with_order(rows: QuerySet[Any]) -> QuerySet[Any]:
    """With the step that made the transfer of the same id: `ordered_at`, and who caused it.

    A step of its own says later that a held order was approved.
    """
    of = Step.objects.filter(transfer=OuterRef("pk"), what__in=[What.HELD, What.QUEUED]).order_by("at", "pk")
    return _annotated(rows, of, "ordered_at")


def _annotated(rows: QuerySet[Any], of: QuerySet[Step], at: str) -> QuerySet[Any]:
    when, actor, request_id = (Subquery(of.values(name)[:1]) for name in ("at", "actor", "request_id"))
    known: QuerySet[Any] = rows.annotate(actor=actor, request_id=request_id, **{at: when})
    return known


def _steps(subject: Subject, what: What) -> Moment:
    rows = Step.objects.filter(transfer__in=subject.order_ids, what=what)
    return Moment(rows.select_related("transfer"), "at", _stepped)


def _stepped(step: Step) -> Entry:
    order = step.transfer
    amount = money.display(order.amount) + (" back" if order.purpose == "return" else "")
    summary = STEPS[What(step.what)].format(amount=amount, said=SAID.get(step.said, ""))
    details = {f"{order.purpose}_id": order.id, "amount": order.amount}
    if step.said:
        details["said"] = step.said
    type = Type(f"{order.purpose}.{step.what}")
    return Entry(step.at, type, summary, step.actor, step.request_id, details)


def _noticed(notice: Any) -> Entry:
    summary, actor = NOTICES[Verdict(notice.verdict)], f"bank:{notice.bank}"
    details = {"verdict": notice.verdict, "source": notice.source, f"{notice.purpose}_id": notice.order_id}
    return Entry(notice.received_at, Type.NOTICE, summary, actor, notice.request_id, details)


def _contradicted(found: Contradiction) -> Entry:
    """The amount is what was asked for here, in satang; `answer_amount` what the acquirer charged."""
    who = found.route.partition(":")[2]
    summary = f"{money.display(found.amount)} are {found.state} here, and {who} says: {found.answer}."
    details: dict[str, Any] = {
        "subject_id": found.subject_id,
        "amount": found.amount,
        "state": found.state,
        "said": found.answer,
    }
    if found.answer_amount is not None:
        summary = (
            f"{money.display(found.amount)} were asked for, and {who} charged another amount or currency."
        )
        details |= {"answer_amount": found.answer_amount, "answer_currency": found.answer_currency}
    return Entry(found.at, Type.CONTRADICTION, summary, found.actor, found.request_id, details)
