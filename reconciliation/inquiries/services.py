"""Inquiries to banks about unpaid QR codes, so that a lost callback only delays a payment."""

import logging
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

from django.db import transaction

import banks
from banks import parallel
from core.deadlines import Deadline
from core.work import due_work
from payments.models import Payment
from reconciliation import models
from reconciliation.inquiries import bank_calls, batches, confirmation_inquiries, scan, schedule
from reconciliation.inquiries.bank_calls import NO_RESPONSE, AnyInquiry, InquiryResponse
from reconciliation.inquiries.scan import OPEN_STATUSES
from reconciliation.matching import deduplication, intake, services as matching

log = logging.getLogger("reconciliation")


def inquire_due(*, now: Callable[[], datetime]) -> int:
    """Make the inquiries that are due, one bank after the other, in any number of runs. Returns how many."""
    scan.create_inquiries(now=now())
    count, deadline = 0, Deadline.after(due_work.RUN_SECONDS)
    while not deadline.is_past:
        batch = batches.start(now())
        if batch is None:
            break
        asked_at = now()
        calls = [bank_calls.prepare_call(inquiry, asked_at) for inquiry in batch.inquiries]
        answers = parallel.run_all(calls, default=NO_RESPONSE)
        for inquiry, answer in zip(batch.inquiries, answers, strict=True):
            _record_safely(inquiry, answer, asked_at, now)
        batches.finish(batch, answers, now())
        count += len(batch.inquiries)
    return count


def _record_safely(
    inquiry: AnyInquiry, answer: InquiryResponse, asked_at: datetime, now: Callable[[], datetime]
) -> None:
    """Store an answer. After an error the inquiry is repeated, by its schedule or when its lease ends."""
    try:
        _store_transactions(inquiry, answer, now)
    except Exception:
        log.exception("the bank's answer to inquiry %s could not be stored", inquiry)
        answer = replace(answer, outcome=models.InquiryOutcome.NO_ANSWER)
    try:
        if isinstance(inquiry, models.ConfirmationInquiry):
            confirmation_inquiries.record_answer(inquiry, answer, now())
        else:
            _record_answer(inquiry, answer, asked_at, now())
    except Exception:
        log.exception("the result of inquiry %s could not be stored", inquiry)


def _store_transactions(inquiry: AnyInquiry, answer: InquiryResponse, now: Callable[[], datetime]) -> None:
    """Store what the bank reports as a notification, once for each bank transaction, and match it."""
    body, source = answer.found.body, models.ReportSource.INQUIRY
    if answer.outcome == models.InquiryOutcome.UNREADABLE and not _was_stored_unreadable(inquiry):
        intake.store(inquiry.bank, body, models.NotificationResult.UNREADABLE, now(), source=source)
    for notification in answer.found.transactions:
        bank_transaction = _find_inquired(inquiry.bank, notification)
        if bank_transaction is None:
            try:
                bank_transaction = intake.receive(
                    bank=inquiry.bank, body=body, notification=notification, now=now(), source=source
                )
            except intake.Moved:
                continue
        elif bank_transaction.is_confirmed:
            continue
        matching.try_apply(bank_transaction_id=bank_transaction.id, now=now())


def _was_stored_unreadable(inquiry: AnyInquiry) -> bool:
    if isinstance(inquiry, models.ConfirmationInquiry):
        return inquiry.last_outcome == models.InquiryOutcome.UNREADABLE
    return inquiry.payment.inquiry_answers.filter(outcome=models.InquiryOutcome.UNREADABLE).exists()


def _find_inquired(bank: str, notification: banks.ReportedTransaction) -> models.BankTransaction | None:
    """Return the bank transaction if an earlier inquiry reported the same money."""
    known = deduplication.find_by_bank_reference(bank, notification.bank_reference, notification.kind)
    if known is None:
        return None
    answers = known.notifications.filter(source=models.ReportSource.INQUIRY)
    if not deduplication.is_same_bank_transaction(known, notification):
        # A contradiction between two answers becomes one exception, not one for each inquiry.
        answers = answers.filter(result=models.NotificationResult.CONFLICT)
    return known if answers.exists() else None


@transaction.atomic
def _record_answer(
    inquiry: models.Inquiry, answer: InquiryResponse, asked_at: datetime, now: datetime
) -> None:
    """Store the answer and the time of the next inquiry.

    Lock the inquiry before reading its payment. If its code ends early at the same moment, either the new
    expiry is read here, or its trigger sets the next time after this transaction.
    """
    locked = models.Inquiry.objects.select_for_update().get(pk=inquiry.pk)
    payment = Payment.objects.get(pk=inquiry.pk)
    bank_calls.record_response(payment.pk, answer, now)
    locked.due_at, locked.lease_until = _next_due_at(payment, answer.outcome, asked_at, now), None
    locked.is_urgent = schedule.is_urgent(payment, locked.due_at or now)
    locked.schedule_index = sum(instant <= asked_at for instant in schedule.inquiry_times(payment))
    locked.save(update_fields=["due_at", "is_urgent", "lease_until", "schedule_index"])


def _next_due_at(
    payment: Payment, outcome: models.InquiryOutcome, asked_at: datetime, now: datetime
) -> datetime | None:
    if payment.status not in OPEN_STATUSES:
        return None
    if outcome != models.InquiryOutcome.NO_ANSWER:
        return schedule.next_after(asked_at, schedule.inquiry_times(payment))
    due_at = schedule.retry_at(now, schedule.inquiry_times(payment))
    if due_at is None:
        log.error("the bank never answered about payment %s: check its statement", payment.id)
    return due_at
