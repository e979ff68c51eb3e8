"""Reports of banks about the payment, and inquiries to banks and acquirers."""

from typing import Any

from django.utils.translation import gettext_lazy as _

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
from timeline.entries import CLOCK, EntrySource, PaymentContext, TimelineEntry, TimelineEntryType


def inquiries(context: PaymentContext) -> EntrySource:
    return EntrySource(InquiryAnswer.objects.filter(payment=context.payment), "answered_at", _inquiry_entry)


def charge_inquiries(context: PaymentContext) -> EntrySource:
    rows = ChargeAnswer.objects.filter(charge=context.payment.pk).select_related("charge")
    return EntrySource(rows, "created_at", _charge_inquiry_entry)


def notifications(context: PaymentContext) -> EntrySource:
    """Exclude the notifications that were made from statement lines."""
    rows = BankNotification.objects.filter(movement__in=context.movement_ids)
    rows = rows.exclude(source=ReportSource.STATEMENT).select_related("movement").defer("body_sealed")
    return EntrySource(rows, "received_at", _notification_entry)


def unsigned_notifications(context: PaymentContext) -> EntrySource:
    """Notifications that the bank must confirm. Its confirmation is another notification."""
    rows = ConfirmationInquiry.objects.filter(payment_id=context.payment.pk, notification__isnull=False)
    rows = rows.select_related("notification").defer("notification__body_sealed")
    return EntrySource(rows, "created_at", _unsigned_entry)


def statement_lines(context: PaymentContext) -> EntrySource:
    rows = StatementLine.objects.filter(movement__in=context.movement_ids)
    rows = rows.select_related("movement", "statement")
    return EntrySource(rows, "statement__created_at", _statement_line_entry)


def unmatched_money(context: PaymentContext) -> EntrySource:
    """Money of no payment yet. Once staff have decided, it is gone from here."""
    rows = BankTransaction.objects.filter(pk__in=context.unmatched_ids)
    return EntrySource(rows, "received_at", _unmatched_entry)


def _inquiry_entry(answer: InquiryAnswer) -> TimelineEntry:
    """The same answers in a row are one entry, at the time of the last."""
    summary = _("Inquiry: %(outcome)s.") % {"outcome": answer.get_outcome_display().lower()}
    if answer.answer_count > 1:
        summary = _("%(answer)s %(count)d times in a row.") % {
            "answer": summary,
            "count": answer.answer_count,
        }
    details = {"said": answer.outcome, "found": answer.transaction_count, "took_ms": answer.duration_ms}
    details |= {
        "answers": answer.answer_count,
        "first_at": iso(answer.first_answered_at or answer.answered_at),
    }
    return TimelineEntry(
        answer.answered_at, TimelineEntryType.INQUIRY, summary, CLOCK, answer.request_id, details
    )


def _charge_inquiry_entry(answer: ChargeAnswer) -> TimelineEntry:
    return TimelineEntry(
        answer.created_at,
        TimelineEntryType.CARD_INQUIRY,
        _("Inquiry about the charge: %(outcome)s.") % {"outcome": answer.get_outcome_display().lower()},
        CLOCK,
        answer.request_id,
        {"acquirer": answer.charge.acquirer, "said": answer.outcome, "took_ms": answer.duration_ms},
    )


def _notification_entry(notification: BankNotification) -> TimelineEntry:
    assert notification.movement is not None
    details = {"verdict": notification.result, "source": notification.source}
    return TimelineEntry(
        notification.received_at,
        TimelineEntryType.NOTIFICATION,
        explanations.of_notification(notification),
        f"bank:{notification.bank}",
        notification.request_id,
        details | _movement_details(notification.movement),
    )


def _unsigned_entry(inquiry: ConfirmationInquiry) -> TimelineEntry:
    assert inquiry.notification is not None
    amount = money.display(inquiry.amount)
    summary = _(
        "A notification reports %(amount)s. It is not signed, so the bank is asked to confirm it."
    ) % {"amount": amount}
    return TimelineEntry(
        inquiry.created_at,
        TimelineEntryType.NOTIFICATION,
        summary,
        f"bank:{inquiry.bank}",
        inquiry.notification.request_id,
        {
            "verdict": inquiry.notification.result,
            "source": inquiry.notification.source,
            "bank_transaction_id": inquiry.bank_transaction_id,
            "amount": inquiry.amount,
            "confirmed_at": iso_or_none(inquiry.confirmed_at),
        },
    )


def _statement_line_entry(line: StatementLine) -> TimelineEntry:
    assert line.movement is not None
    summary = _("A bank statement reports: %(movement)s.") % {
        "movement": explanations.of_report(line.movement)
    }
    if not line.movement.is_confirmed:
        summary += " " + _("Only the statement reports it so far: the money cannot be paid out.")
    statement = line.statement
    details = {"result": line.result, "source": ReportSource.STATEMENT.value}
    return TimelineEntry(
        statement.created_at,
        TimelineEntryType.STATEMENT,
        summary,
        f"bank:{line.bank}",
        statement.request_id,
        details | _movement_details(line.movement),
        {"statement": statement.file_name, "imported_by": statement.actor},
    )


def _unmatched_entry(movement: BankTransaction) -> TimelineEntry:
    return TimelineEntry(
        movement.received_at,
        TimelineEntryType.NOTIFICATION,
        _(UNMATCHED_MONEY),
        f"bank:{movement.bank}",
        details={
            "source": movement.source,
            "receipt_id": movement.id,
            "amount": movement.amount,
            "paid_at": iso(movement.paid_at),
            "outcome": movement.match_result,
        },
    )


def _movement_details(movement: BankTransaction) -> dict[str, Any]:
    """What merchants see of the money. The payer's account is masked."""
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
