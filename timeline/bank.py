"""What the bank said of the payment, by which way, and what it was asked."""

from typing import Any

from core import money, vault
from core.clock import iso, iso_or_none
from reconciliation.models import (
    BankNotification,
    BankTransaction,
    BankTransactionKind,
    ConfirmationInquiry,
    InquiryAnswer,
    InquiryOutcome,
    MatchResult,
    NotificationResult,
    ReportSource,
    StatementLine,
)
from timeline.entries import CLOCK, EntrySource, PaymentContext, TimelineEntry, TimelineEntryType

KIND_TEXT = {
    BankTransactionKind.CREDIT: "{amount} received",
    BankTransactionKind.DECLINE: "the payment was declined",
    BankTransactionKind.REVERSAL: "{amount} reversed by the bank",
}
MATCH_RESULT_TEXT = {
    MatchResult.PENDING: "not matched yet",
    MatchResult.APPLIED: "it paid this payment",
    MatchResult.DECLINED: "the payment failed",
    MatchResult.REVERSED: "deducted from the balance",
    MatchResult.ORDERED: "as requested by a refund",
    MatchResult.UNMATCHED: "the reference is unknown",
    MatchResult.DUPLICATE: "the payment was already paid",
    MatchResult.AMOUNT_MISMATCH: "the amount differs",
    MatchResult.LATE: "paid after the code expired",
}
NOTIFICATION_RESULT_TEXT = {
    NotificationResult.REPEAT: "The bank repeated its notification.",
    NotificationResult.CONFLICT: "The bank reported this transaction with other details than before.",
}
INQUIRY_RESULT_TEXT = {
    InquiryOutcome.FOUND: "Inquiry: the bank reports money.",
    InquiryOutcome.NOTHING: "Inquiry: the bank reports no money.",
    InquiryOutcome.NO_ANSWER: "Inquiry: the bank did not answer.",
    InquiryOutcome.UNREADABLE: "Inquiry: the bank's answer could not be read.",
}


def inquiries(context: PaymentContext) -> EntrySource:
    return EntrySource(InquiryAnswer.objects.filter(payment=context.payment), "answered_at", _inquiry_entry)


def notifications(context: PaymentContext) -> EntrySource:
    """Of a statement the line is told."""
    reported = BankNotification.objects.filter(movement__in=context.movement_ids).exclude(
        source=ReportSource.STATEMENT
    )
    rows = reported.select_related("movement").defer("body_sealed")
    return EntrySource(rows, "received_at", _notification_entry)


def unsigned_notifications(context: PaymentContext) -> EntrySource:
    """Notifications that prove nothing by themselves. Their bank's answer is a notification of its own."""
    inquiries = ConfirmationInquiry.objects.filter(payment_id=context.payment.pk, notification__isnull=False)
    return EntrySource(
        inquiries.select_related("notification").defer("notification__body_sealed"),
        "created_at",
        _unsigned_entry,
    )


def statement_lines(context: PaymentContext) -> EntrySource:
    lines = StatementLine.objects.filter(movement__in=context.movement_ids)
    return EntrySource(
        lines.select_related("movement", "statement"), "statement__created_at", _statement_line_entry
    )


def _inquiry_entry(response: InquiryAnswer) -> TimelineEntry:
    details = {"said": response.outcome, "found": response.transaction_count, "took_ms": response.duration_ms}
    return TimelineEntry(
        response.answered_at,
        TimelineEntryType.INQUIRY,
        INQUIRY_RESULT_TEXT[InquiryOutcome(response.outcome)],
        CLOCK,
        response.request_id,
        details,
    )


def _notification_entry(notification: BankNotification) -> TimelineEntry:
    assert notification.movement is not None
    summary = (
        NOTIFICATION_RESULT_TEXT.get(NotificationResult(notification.result))
        or f"The bank reports: {_describe(notification.movement)}."
    )
    details = {
        "verdict": notification.result,
        "source": notification.source,
        **movement_details(notification.movement),
    }
    actor = f"bank:{notification.bank}"
    return TimelineEntry(
        notification.received_at,
        TimelineEntryType.NOTIFICATION,
        summary,
        actor,
        notification.request_id,
        details,
    )


def _unsigned_entry(inquiry: ConfirmationInquiry) -> TimelineEntry:
    assert inquiry.notification is not None
    amount = money.display(inquiry.amount)
    summary = f"A notification reports {amount}. It is not signed, so the bank is asked to confirm it."
    details = {
        "verdict": inquiry.notification.result,
        "source": inquiry.notification.source,
        "bank_transaction_id": inquiry.bank_transaction_id,
        "amount": inquiry.amount,
        "confirmed_at": iso_or_none(inquiry.confirmed_at),
    }
    actor = f"bank:{inquiry.bank}"
    return TimelineEntry(
        inquiry.created_at,
        TimelineEntryType.NOTIFICATION,
        summary,
        actor,
        inquiry.notification.request_id,
        details,
    )


def _statement_line_entry(line: StatementLine) -> TimelineEntry:
    assert line.movement is not None
    summary = f"A bank statement reports: {_describe(line.movement)}."
    if not line.movement.is_confirmed:
        summary += " Only the statement reports it so far: the money cannot be paid out."
    details = {
        "result": line.result,
        "source": ReportSource.STATEMENT.value,
        **movement_details(line.movement),
    }
    imported = line.statement
    internal = {"statement": imported.file_name, "imported_by": imported.actor}
    return TimelineEntry(
        at=imported.created_at,
        type=TimelineEntryType.STATEMENT,
        summary=summary,
        actor=f"bank:{line.bank}",
        request_id=imported.request_id,
        details=details,
        internal=internal,
    )


def _describe(movement: BankTransaction) -> str:
    what = KIND_TEXT[BankTransactionKind(movement.kind)].format(amount=money.display(movement.amount))
    return f"{what}, {MATCH_RESULT_TEXT[MatchResult(movement.match_result)]}"


def movement_details(movement: BankTransaction) -> dict[str, Any]:
    """What merchants may know of money that came for them: of the payer's account its last digits."""
    return {
        "receipt_id": movement.id,
        "bank_transaction_id": movement.current_bank_transaction_id,
        "kind": movement.kind,
        "amount": movement.amount,
        "paid_at": iso(movement.paid_at),
        "outcome": movement.match_result or None,
        "resolution": movement.resolution_state or None,
        "payer_account": vault.masked(movement.payer_account or None),
    }
