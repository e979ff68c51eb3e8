"""Ask banks about payments that nobody confirmed: a lost callback becomes a late one, not a lost payment."""

import logging
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

from django.db import transaction

import banks
from banks import calling
from core import origin
from payments.models import Payment
from receipts import confirmation_inquiries, enrolment, inbox, joining, questions, rounds, schedule, services
from receipts.enrolment import OPEN
from receipts.models import ConfirmationInquiry, Inquiry, InquiryAnswer, Receipt, Said, Source, Verdict
from receipts.questions import SILENCE, Answer, Asked

log = logging.getLogger("receipts")
# No new round after so many seconds: what else the worker has to do waits.
PATIENCE_SECONDS = 5.0


def inquire_due(*, now: Callable[[], datetime]) -> int:
    """Ask what is due, bank after bank; returns how many questions were put.

    May run many times at once: a sweep that waits for a slow bank leaves the others to the next sweep.
    """
    enrolment.enrol(now=now())
    asked, ends_at = 0, time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < ends_at:
        begun = rounds.begin(now())
        if begun is None:
            break
        _carry_out(begun, now)
        asked += len(begun.inquiries)
    return asked


def _carry_out(begun: rounds.Round, now: Callable[[], datetime]) -> None:
    asked_at = now()
    calls = [questions.ready(inquiry, asked_at) for inquiry in begun.inquiries]
    answers = calling.all_at_once(calls, silence=SILENCE)
    for inquiry, answer in zip(begun.inquiries, answers, strict=True):
        _note(inquiry, answer, asked_at, now)
    rounds.end(begun, answers, now())


def _note(inquiry: Asked, answer: Answer, asked_at: datetime, now: Callable[[], datetime]) -> None:
    """What fails here is asked again: by the schedule or, if not even that can be written, by the lease."""
    try:
        _hear(inquiry, answer, now)
    except Exception:
        log.exception("what the bank said of %s could not be kept", inquiry)
        answer = replace(answer, said=Said.NO_ANSWER)
    try:
        if isinstance(inquiry, ConfirmationInquiry):
            confirmation_inquiries.settle(inquiry, answer, now())
        else:
            _settle(inquiry, answer, asked_at, now())
    except Exception:
        log.exception("inquiry of %s could not be noted", inquiry)


def _hear(inquiry: Asked, answer: Answer, now: Callable[[], datetime]) -> None:
    """Through the door of all notices, each movement once, however often it is found."""
    body, source = answer.found.body, Source.INQUIRY
    if answer.said == Said.UNREADABLE and not _was_parked(inquiry):
        inbox.park(bank=inquiry.bank, body=body, now=now(), source=source)
    for notice in answer.found.notices:
        receipt = _heard_before(inquiry.bank, notice)
        if receipt is None:
            receipt = inbox.accept(bank=inquiry.bank, body=body, notice=notice, now=now(), source=source)
        elif receipt.is_confirmed:
            continue
        services.try_to_apply(receipt_id=receipt.id, now=now())


def _was_parked(inquiry: Asked) -> bool:
    if isinstance(inquiry, ConfirmationInquiry):
        return confirmation_inquiries.was_parked(inquiry)
    return InquiryAnswer.objects.filter(payment=inquiry.payment_id, said=Said.UNREADABLE).exists()


def _heard_before(bank: str, notice: banks.Notice) -> Receipt | None:
    """The bank transaction, if an earlier answer told of the same movement."""
    known = joining.named(bank, notice.bank_transaction_id, notice.kind)
    if known is None:
        return None
    answers = known.notices.filter(source=Source.INQUIRY)
    if not joining.are_one(known, notice):
        # Staff are told once that the bank's answers contradict what it said first.
        answers = answers.filter(verdict=Verdict.CONFLICT)
    return known if answers.exists() else None


@transaction.atomic
def _settle(inquiry: Inquiry, answer: Answer, asked_at: datetime, now: datetime) -> None:
    """Keep the answer and when to ask next. The inquiry is locked before its payment is read: a code that
    ends early meanwhile either is seen here or moves the inquiry after us."""
    ours = Inquiry.objects.select_for_update().get(pk=inquiry.pk)
    payment = Payment.objects.get(pk=inquiry.pk)
    InquiryAnswer.objects.create(
        payment=payment,
        said=answer.said,
        found=len(answer.found.notices),
        took_ms=round(answer.seconds * 1000),
        at=now,
        request_id=origin.current().request_id,
    )
    ours.due_at, ours.lease_until = _next(payment, answer.said, asked_at, now), None
    ours.is_fresh = schedule.is_fresh(payment, ours.due_at or now)
    ours.step = sum(instant <= asked_at for instant in schedule.of(payment))
    ours.save(update_fields=["due_at", "is_fresh", "lease_until", "step"])


def _next(payment: Payment, said: Said, asked_at: datetime, now: datetime) -> datetime | None:
    if payment.status not in OPEN:
        return None
    if said != Said.NO_ANSWER:
        return schedule.next_after(asked_at, schedule.of(payment))
    due_at = schedule.again_after(now, schedule.of(payment))
    if due_at is None:
        log.error("the bank never answered about payment %s: its statement has to tell", payment.id)
    return due_at
