"""What the bank said of the payment, by which way, and what it was asked."""

from typing import Any

from console.timeline.entries import CLOCK, Entry, Moment, Subject, Type
from core import money, vault
from core.clock import iso, iso_or_none
from receipts.models import (
    ConfirmationInquiry,
    InquiryAnswer,
    Kind,
    Notice,
    Outcome,
    Receipt,
    Said,
    Source,
    StatementLine,
    Verdict,
)

WHAT = {
    Kind.CREDIT: "{amount} came in",
    Kind.DECLINE: "the payment was declined",
    Kind.REVERSAL: "{amount} were taken back",
}
OUTCOMES = {
    Outcome.WAITING: "is being looked at",
    Outcome.APPLIED: "it paid for this",
    Outcome.DECLINED: "so it failed",
    Outcome.REVERSED: "so it left the balance",
    Outcome.ORDERED: "as it was told to",
    Outcome.UNMATCHED: "nobody asked for it",
    Outcome.DUPLICATE: "but there was nothing left to pay",
    Outcome.AMOUNT_MISMATCH: "but another amount was asked for",
    Outcome.LATE: "but after the code had expired",
}
VERDICTS = {
    Verdict.REPEAT: "The bank says the same again.",
    Verdict.CONFLICT: "The bank tells differently what it told before.",
}
ANSWERS = {
    Said.FOUND: "Asked for money, the bank has some.",
    Said.NOTHING: "Asked for money, the bank has none.",
    Said.NO_ANSWER: "Asked for money, the bank does not answer.",
    Said.UNREADABLE: "Asked for money, the bank answers what nobody understands.",
}


def inquiries(subject: Subject) -> Moment:
    return Moment(InquiryAnswer.objects.filter(payment=subject.payment), "at", _answered)


def notices(subject: Subject) -> Moment:
    """Of a statement the line is told."""
    told = Notice.objects.filter(receipt__in=subject.receipt_ids).exclude(source=Source.STATEMENT)
    rows = told.select_related("receipt").defer("body_sealed")
    return Moment(rows, "received_at", _noticed)


def unsigned(subject: Subject) -> Moment:
    """Notifications that prove nothing by themselves. Their bank's answer is a notice of its own."""
    asked = ConfirmationInquiry.objects.filter(payment_id=subject.payment.pk, notice__isnull=False)
    return Moment(asked.select_related("notice").defer("notice__body_sealed"), "created_at", _unsigned)


def lines(subject: Subject) -> Moment:
    read = StatementLine.objects.filter(receipt__in=subject.receipt_ids)
    return Moment(read.select_related("receipt", "statement"), "statement__created_at", _lined)


def _answered(answer: InquiryAnswer) -> Entry:
    details = {"said": answer.said, "found": answer.found, "took_ms": answer.took_ms}
    return Entry(answer.at, Type.INQUIRY, ANSWERS[Said(answer.said)], CLOCK, answer.request_id, details)


def _noticed(notice: Notice) -> Entry:
    assert notice.receipt is not None
    summary = VERDICTS.get(Verdict(notice.verdict)) or f"The bank says: {_said(notice.receipt)}."
    details = {"verdict": notice.verdict, "source": notice.source, **about(notice.receipt)}
    actor = f"bank:{notice.bank}"
    return Entry(notice.received_at, Type.NOTICE, summary, actor, notice.request_id, details)


def _unsigned(inquiry: ConfirmationInquiry) -> Entry:
    assert inquiry.notice is not None
    amount = money.display(inquiry.amount)
    summary = f"A notification reports {amount}. It is not signed, so the bank is asked first."
    details = {
        "verdict": inquiry.notice.verdict,
        "source": inquiry.notice.source,
        "bank_transaction_id": inquiry.bank_transaction_id,
        "amount": inquiry.amount,
        "confirmed_at": iso_or_none(inquiry.confirmed_at),
    }
    actor = f"bank:{inquiry.bank}"
    return Entry(inquiry.created_at, Type.NOTICE, summary, actor, inquiry.notice.request_id, details)


def _lined(line: StatementLine) -> Entry:
    assert line.receipt is not None
    summary = f"The bank's statement says: {_said(line.receipt)}."
    if not line.receipt.is_confirmed:
        summary += " Only the statement reports it so far, and the money cannot leave."
    details = {"result": line.result, "source": Source.STATEMENT.value, **about(line.receipt)}
    imported = line.statement
    internal = {"statement": imported.name, "imported_by": imported.imported_by}
    return Entry(
        at=imported.created_at,
        type=Type.STATEMENT,
        summary=summary,
        actor=f"bank:{line.bank}",
        request_id=imported.request_id,
        details=details,
        internal=internal,
    )


def _said(receipt: Receipt) -> str:
    what = WHAT[Kind(receipt.kind)].format(amount=money.display(receipt.amount))
    return f"{what}, {OUTCOMES[Outcome(receipt.outcome)]}"


def about(receipt: Receipt) -> dict[str, Any]:
    """What merchants may know of money that came for them: of the payer's account its last digits."""
    return {
        "receipt_id": receipt.id,
        "bank_transaction_id": receipt.transaction_id,
        "kind": receipt.kind,
        "amount": receipt.amount,
        "paid_at": iso(receipt.paid_at),
        "outcome": receipt.outcome or None,
        "resolution": receipt.resolution or None,
        "payer_account": vault.masked(receipt.payer_account or None),
    }
