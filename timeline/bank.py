"""Reports of banks about the payment, and inquiries to banks and acquirers."""

from typing import Any

from django.db.models import Q
from django.utils.translation import gettext as _

from core import money, vault
from core.clock import iso, iso_or_none
from payments.explanations import UNMATCHED_MONEY
from payments.models import ChargeAnswer
from reconciliation.exceptions import explanations
from reconciliation.models import (
    BankNotification,
    BankTransaction,
    ConfirmationInquiry,
    InquiryAnswer,
    ReportSource,
    StatementLine,
)
from timeline import explanations as texts
from timeline.entries import CLOCK, EntrySource, PaymentContext, TimelineEntry, TimelineEntryType


def sources(context: PaymentContext) -> list[EntrySource]:
    ours = Q(bank_transaction__in=context.bank_transaction_ids)
    inquiries = InquiryAnswer.objects.filter(payment=context.payment)
    of_charge = ChargeAnswer.objects.filter(charge=context.payment.pk).select_related("charge")
    # The bank must confirm these. Its confirmation is another notification.
    unsigned = ConfirmationInquiry.objects.filter(
        payment_id=context.payment.pk, notification__isnull=False
    ).select_related("notification")
    # The others were made from statement lines.
    signed = BankNotification.objects.filter(ours).exclude(source=ReportSource.STATEMENT)
    lines = StatementLine.objects.filter(ours).select_related("bank_transaction", "statement")
    # Money of no payment yet. Once staff have decided, it is gone from here.
    unmatched = BankTransaction.objects.filter(pk__in=context.unmatched_ids)
    return [
        EntrySource(inquiries, "answered_at", _inquiry),
        EntrySource(of_charge, "created_at", _charge_inquiry),
        EntrySource(unsigned.defer("notification__body_sealed"), "created_at", _unsigned),
        EntrySource(
            signed.select_related("bank_transaction").defer("body_sealed"),
            "received_at",
            lambda row: notification(row, _bank_transaction_details(row.bank_transaction)),
        ),
        EntrySource(lines, "statement__created_at", _statement_line),
        EntrySource(unmatched, "received_at", _unmatched),
    ]


def notification(row: Any, details: dict[str, Any]) -> TimelineEntry:
    """A notification about money or about an order."""
    details = {"result": row.result, "source": row.source, **details}
    summary, type_ = explanations.of_notification(row), TimelineEntryType.NOTIFICATION
    return TimelineEntry.of(row, type_, summary, details, actor=f"bank:{row.bank}")


def _inquiry(answer: InquiryAnswer) -> TimelineEntry:
    """The same answers in a row are one entry, at the time of the last."""
    summary = texts.INQUIRY % {"outcome": answer.get_outcome_display().lower()}
    if answer.answer_count > 1:
        words = {"answer": summary, "count": answer.answer_count}
        summary = texts.REPEATED % words
    details = {
        "answer": answer.outcome,
        "found": answer.transaction_count,
        "took_ms": answer.duration_ms,
        "answers": answer.answer_count,
        "first_at": iso(answer.first_answered_at or answer.answered_at),
    }
    return TimelineEntry.of(answer, TimelineEntryType.INQUIRY, summary, details, actor=CLOCK)


def _charge_inquiry(answer: ChargeAnswer) -> TimelineEntry:
    words = {"outcome": answer.get_outcome_display().lower()}
    summary = texts.CHARGE_INQUIRY % words
    details = {"acquirer": answer.charge.acquirer, "answer": answer.outcome, "took_ms": answer.duration_ms}
    return TimelineEntry.of(answer, TimelineEntryType.CARD_INQUIRY, summary, details, actor=CLOCK)


def _unsigned(inquiry: Any) -> TimelineEntry:
    found, amount = inquiry.notification, money.display(inquiry.amount)
    details = {
        "result": found.result,
        "source": found.source,
        "bank_reference": inquiry.bank_reference,
        "amount": inquiry.amount,
        "confirmed_at": iso_or_none(inquiry.confirmed_at),
    }
    caused_by = {"actor": f"bank:{inquiry.bank}", "request_id": found.request_id}
    type_ = TimelineEntryType.NOTIFICATION
    return TimelineEntry.of(inquiry, type_, texts.UNSIGNED % {"amount": amount}, details, **caused_by)


def _statement_line(line: Any) -> TimelineEntry:
    words = {"bank_transaction": explanations.of_report(line.bank_transaction)}
    summary = texts.STATEMENT % words
    if not line.bank_transaction.is_confirmed:
        summary += f" {texts.ONLY_STATEMENT}"
    return TimelineEntry.of(
        line,
        TimelineEntryType.STATEMENT,
        summary,
        {
            "result": line.result,
            "source": ReportSource.STATEMENT.value,
            **_bank_transaction_details(line.bank_transaction),
        },
        actor=f"bank:{line.bank}",
        request_id=line.statement.request_id,
        internal={"statement": line.statement.file_name, "imported_by": line.statement.actor},
    )


def _unmatched(bank_transaction: BankTransaction) -> TimelineEntry:
    details = {
        "source": bank_transaction.source,
        "bank_transaction_id": bank_transaction.id,
        "amount": bank_transaction.amount,
        "paid_at": iso(bank_transaction.paid_at),
        "match_result": bank_transaction.match_result,
    }
    caused_by = {"actor": f"bank:{bank_transaction.bank}", "request_id": ""}
    type_ = TimelineEntryType.NOTIFICATION
    return TimelineEntry.of(bank_transaction, type_, _(UNMATCHED_MONEY), details, **caused_by)


def _bank_transaction_details(bank_transaction: BankTransaction) -> dict[str, Any]:
    """What merchants see of the money. The payer's account is masked."""
    return {
        "bank_transaction_id": bank_transaction.id,
        "bank_reference": bank_transaction.current_bank_reference,
        "kind": bank_transaction.kind,
        "amount": bank_transaction.amount,
        "paid_at": iso(bank_transaction.paid_at),
        "match_result": bank_transaction.match_result or None,
        "resolution": bank_transaction.resolution_state or None,
        "payer_account": vault.masked(bank_transaction.payer_account or None),
    }
