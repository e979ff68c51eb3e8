"""Ask banks about payments that nobody confirmed: a lost callback becomes a late one, not a lost payment."""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import F, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce, Now

import banks
from banks import calling
from payments.models import Payment
from receipts import enrolment, inbox, joining, questions, schedule, services
from receipts.enrolment import OPEN
from receipts.models import Inquiry, InquiryAnswer, Said, Source, Turn
from receipts.questions import SILENCE, Answer

log = logging.getLogger("receipts")
# Longer than the calls of a round and what is written down after them.
LEASE = timedelta(seconds=60)
# Side by side in one round, whatever a bank takes.
LINES = 32
# Codes that somebody waits for, and the others.
LANES = (True, False)
# In each fourth round those come first that nobody waits for any more.
OTHERS_EVERY = 4
# For a bank after a round without any answer: after the first such round, the second and so on.
RESTS = tuple(timedelta(seconds=seconds) for seconds in (1, 2, 5, 15))
# No new round after so many seconds: what else the worker has to do waits.
PATIENCE_SECONDS = 5.0
# Most of what comes due has been paid by then, and is closed so many at a time in each lane.
LOOKED_AT = 500


@dataclass(frozen=True, slots=True)
class Round:
    """Questions to one bank, which nobody else asks meanwhile."""

    turn: Turn
    inquiries: list[Inquiry]
    per_second: float


def inquire_due(*, now: Callable[[], datetime]) -> int:
    """Ask what is due, bank after bank; returns how many questions were put.

    May run many times at once: a sweep that waits for a slow bank leaves the others to the next sweep.
    """
    enrolment.enrol(now=now())
    asked, ends_at = 0, time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < ends_at:
        begun = _begin_round(now())
        if begun is None:
            break
        _carry_out(begun, now)
        asked += len(begun.inquiries)
    return asked


def lane(bank: str | OuterRef, now: datetime, *, is_fresh: bool) -> "QuerySet[Inquiry]":
    """What a bank is to be asked, or to be closed, and nobody has in hand: what waits longest first."""
    free = Q(lease_until__isnull=True) | Q(lease_until__lte=Now())
    return Inquiry.objects.filter(free, bank=bank, is_fresh=is_fresh, due_at__lte=now).order_by("due_at")


def free_turns(now: datetime) -> "QuerySet[Turn]":
    """Banks that may be asked and have something due, the longest free first."""
    # The first by the index: to find out that there is any, PostgreSQL would read them all.
    fresh, others = (Subquery(lane(OuterRef("pk"), now, is_fresh=each).values("pk")[:1]) for each in LANES)
    free = Turn.objects.filter(pk__in=banks.asked(), free_at__lte=Now()).order_by("free_at")
    return free.alias(first=Coalesce(fresh, others)).filter(first__isnull=False)


@transaction.atomic
def _begin_round(now: datetime) -> Round | None:
    """A bank's turn and as many questions as it takes in a second, leased by the database's clock."""
    turn = free_turns(now).select_for_update(skip_locked=True, of=("self",)).first()
    if turn is None:
        return None
    Turn.objects.filter(pk=turn.pk).update(free_at=Now() + LEASE, rounds=F("rounds") + 1)
    turn.refresh_from_db()
    per_second = banks.asked()[turn.bank]
    return Round(turn, _pick(turn, now, limit=min(max(int(per_second), 1), LINES)), per_second)


def _pick(turn: Turn, now: datetime, *, limit: int) -> list[Inquiry]:
    """From one lane, and what it leaves from the other; in most rounds first what somebody waits for."""
    picked: list[Inquiry] = []
    for is_fresh in LANES if turn.rounds % OTHERS_EVERY else reversed(LANES):
        waiting = lane(turn.bank, now, is_fresh=is_fresh)
        _sort_out(waiting, now)
        picked += _claim(waiting, limit=limit - len(picked))
    return picked


def _sort_out(waiting: "QuerySet[Inquiry]", now: datetime) -> None:
    """Nobody asks about what was paid or declined meanwhile, or hurries for a payer who has gone."""
    columns = ("is_fresh", "payment__status", "payment__expires_at")
    looked_at = list(waiting.select_related("payment").only(*columns)[:LOOKED_AT])
    ended = [each.pk for each in looked_at if each.payment.status not in OPEN]
    stale = [each.pk for each in looked_at if each.is_fresh and not schedule.is_fresh(each.payment, now)]
    Inquiry.objects.filter(pk__in=ended).update(due_at=None)
    Inquiry.objects.filter(pk__in=stale).update(is_fresh=False)


def _claim(waiting: "QuerySet[Inquiry]", *, limit: int) -> list[Inquiry]:
    first = waiting.filter(payment__status__in=OPEN).select_related("payment__qr_code")
    claimed = list(first.select_for_update(skip_locked=True, of=("self",))[:limit])
    Inquiry.objects.filter(pk__in=[each.pk for each in claimed]).update(lease_until=Now() + LEASE)
    return claimed


def _carry_out(begun: Round, now: Callable[[], datetime]) -> None:
    began, asked_at = time.monotonic(), now()
    calls = [questions.ready(inquiry, asked_at) for inquiry in begun.inquiries]
    answers = calling.all_at_once(calls, silence=SILENCE)
    for inquiry, answer in zip(begun.inquiries, answers, strict=True):
        _note(inquiry, answer, asked_at, now)
    _end_round(begun, answers, time.monotonic() - began)


def _note(inquiry: Inquiry, answer: Answer, asked_at: datetime, now: Callable[[], datetime]) -> None:
    """What fails here is asked again: by the schedule or, if not even that can be written, by the lease."""
    try:
        _hear(inquiry, answer, now)
    except Exception:
        log.exception("what the bank said of payment %s could not be kept", inquiry.pk)
        answer = replace(answer, said=Said.NO_ANSWER)
    try:
        _settle(inquiry, answer, asked_at, now())
    except Exception:
        log.exception("inquiry of payment %s could not be noted", inquiry.pk)


def _hear(inquiry: Inquiry, answer: Answer, now: Callable[[], datetime]) -> None:
    """Through the door of all notices, each movement once, however often it is found."""
    body, source = answer.found.body, Source.INQUIRY
    if answer.said == Said.UNREADABLE and not _was_parked(inquiry):
        inbox.park(bank=inquiry.bank, body=body, now=now(), source=source)
    for notice in answer.found.notices:
        if not _was_heard(inquiry.bank, notice):
            receipt = inbox.accept(bank=inquiry.bank, body=body, notice=notice, now=now(), source=source)
            services.try_to_apply(receipt_id=receipt.id, now=now())


def _was_parked(inquiry: Inquiry) -> bool:
    return InquiryAnswer.objects.filter(payment=inquiry.payment_id, said=Said.UNREADABLE).exists()


def _was_heard(bank: str, notice: banks.Notice) -> bool:
    """Whether an answer of before told of the same movement."""
    known = joining.named(bank, notice.bank_transaction_id, notice.kind)
    return (
        known is not None
        and joining.are_one(known, notice)
        and known.notices.filter(source=Source.INQUIRY).exists()
    )


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


def _end_round(begun: Round, answers: list[Answer], seconds: float) -> None:
    """Give the turn back: when the rate allows, or after a rest if there was nothing but silence."""
    turn, wait = begun.turn, timedelta(seconds=max(len(answers) / begun.per_second - seconds, 0))
    is_silent = bool(answers) and all(answer.said == Said.NO_ANSWER for answer in answers)
    silences = turn.silences + 1 if is_silent else 0
    if is_silent:
        log.warning("bank %s answered none of %d questions", turn.bank, len(answers))
        wait = max(wait, schedule.paced(RESTS[min(silences, len(RESTS)) - 1]))
    ours = Turn.objects.filter(pk=turn.pk, free_at=turn.free_at)
    ours.update(free_at=Now() + wait, silences=silences)
