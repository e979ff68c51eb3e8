"""Ask banks about payments that nobody confirmed: a lost callback becomes a late one, not a lost payment."""

import logging
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

from django.db import transaction

import banks
from banks import parallel
from core import request_context
from payments.models import Payment
from reconciliation.inquiries import bank_calls, batches, confirmation_inquiries, scan, schedule
from reconciliation.inquiries.bank_calls import NO_RESPONSE, AnyInquiry, InquiryResponse
from reconciliation.inquiries.scan import OPEN_STATUSES
from reconciliation.matching import (
    deduplication,
)
from reconciliation.matching import services as matching
from reconciliation.models import (
    BankTransaction,
    ConfirmationInquiry,
    Inquiry,
    InquiryAnswer,
    InquiryOutcome,
    NotificationResult,
    ReportSource,
)
from reconciliation.notifications import intake

log = logging.getLogger("reconciliation")
# No new round after so many seconds: what else the worker has to do waits.
PATIENCE_SECONDS = 5.0


def inquire_due(*, now: Callable[[], datetime]) -> int:
    """Ask what is due, bank after bank; returns how many questions were put.

    May run many times at once: a sweep that waits for a slow bank leaves the others to the next sweep.
    """
    scan.create_inquiries(now=now())
    count, ends_at = 0, time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < ends_at:
        batch = batches.start(now())
        if batch is None:
            break
        _run_batch(batch, now)
        count += len(batch.inquiries)
    return count


def _run_batch(batch: batches.InquiryBatch, now: Callable[[], datetime]) -> None:
    asked_at = now()
    calls = [bank_calls.prepare_call(inquiry, asked_at) for inquiry in batch.inquiries]
    answers = parallel.run_all(calls, default=NO_RESPONSE)
    for inquiry, answer in zip(batch.inquiries, answers, strict=True):
        _record_safely(inquiry, answer, asked_at, now)
    batches.finish(batch, answers, now())


def _record_safely(
    inquiry: AnyInquiry, answer: InquiryResponse, asked_at: datetime, now: Callable[[], datetime]
) -> None:
    """What fails here is asked again: by the schedule or, if not even that can be written, by the lease."""
    try:
        _store_transactions(inquiry, answer, now)
    except Exception:
        log.exception("what the bank said of %s could not be kept", inquiry)
        answer = replace(answer, outcome=InquiryOutcome.NO_ANSWER)
    try:
        if isinstance(inquiry, ConfirmationInquiry):
            confirmation_inquiries.record_answer(inquiry, answer, now())
        else:
            _record_answer(inquiry, answer, asked_at, now())
    except Exception:
        log.exception("inquiry of %s could not be noted", inquiry)


def _store_transactions(inquiry: AnyInquiry, answer: InquiryResponse, now: Callable[[], datetime]) -> None:
    """Through the door of all notifications, each movement once, however often it is found."""
    body, source = answer.found.body, ReportSource.INQUIRY
    if answer.outcome == InquiryOutcome.UNREADABLE and not _was_stored_unreadable(inquiry):
        intake.store_unreadable(bank=inquiry.bank, body=body, now=now(), source=source)
    for notification in answer.found.transactions:
        movement = _find_inquired(inquiry.bank, notification)
        if movement is None:
            movement = intake.receive(
                bank=inquiry.bank, body=body, notification=notification, now=now(), source=source
            )
        elif movement.is_confirmed:
            continue
        matching.try_apply(movement_id=movement.id, now=now())


def _was_stored_unreadable(inquiry: AnyInquiry) -> bool:
    if isinstance(inquiry, ConfirmationInquiry):
        return confirmation_inquiries.was_stored_unreadable(inquiry)
    return InquiryAnswer.objects.filter(
        payment=inquiry.payment_id, outcome=InquiryOutcome.UNREADABLE
    ).exists()


def _find_inquired(bank: str, notification: banks.ReportedTransaction) -> BankTransaction | None:
    """The bank transaction, if an earlier answer told of the same movement."""
    known = deduplication.find_by_bank_id(bank, notification.bank_transaction_id, notification.kind)
    if known is None:
        return None
    answers = known.notifications.filter(source=ReportSource.INQUIRY)
    if not deduplication.is_same_movement(known, notification):
        # Staff are told once that the bank's answers contradict what it said first.
        answers = answers.filter(result=NotificationResult.CONFLICT)
    return known if answers.exists() else None


@transaction.atomic
def _record_answer(inquiry: Inquiry, answer: InquiryResponse, asked_at: datetime, now: datetime) -> None:
    """Keep the answer and when to ask next. The inquiry is locked before its payment is read: a code that
    ends early meanwhile either is seen here or moves the inquiry after us."""
    locked = Inquiry.objects.select_for_update().get(pk=inquiry.pk)
    payment = Payment.objects.get(pk=inquiry.pk)
    InquiryAnswer.objects.create(
        payment=payment,
        outcome=answer.outcome,
        transaction_count=len(answer.found.transactions),
        duration_ms=round(answer.seconds * 1000),
        answered_at=now,
        request_id=request_context.current().request_id,
    )
    locked.due_at, locked.lease_until = _next_due_at(payment, answer.outcome, asked_at, now), None
    locked.is_urgent = schedule.is_urgent(payment, locked.due_at or now)
    locked.schedule_index = sum(instant <= asked_at for instant in schedule.inquiry_times(payment))
    locked.save(update_fields=["due_at", "is_urgent", "lease_until", "schedule_index"])


def _next_due_at(
    payment: Payment, outcome: InquiryOutcome, asked_at: datetime, now: datetime
) -> datetime | None:
    if payment.status not in OPEN_STATUSES:
        return None
    if outcome != InquiryOutcome.NO_ANSWER:
        return schedule.next_after(asked_at, schedule.inquiry_times(payment))
    due_at = schedule.retry_at(now, schedule.inquiry_times(payment))
    if due_at is None:
        log.error("the bank never answered about payment %s: its statement has to tell", payment.id)
    return due_at
