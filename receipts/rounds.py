"""Rounds of questions to a bank: whose turn it is, what is asked first, and when the bank rests."""

import logging
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import F, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce, Now

import banks
from receipts import schedule
from receipts.enrolment import OPEN
from receipts.models import Inquiry, Said, Turn
from receipts.questions import Answer

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
# Most of what comes due has been paid by then, and is closed so many at a time in each lane.
LOOKED_AT = 500


@dataclass(frozen=True, slots=True)
class Round:
    """Questions to one bank, which nobody else asks meanwhile."""

    turn: Turn
    inquiries: list[Inquiry]
    per_second: float


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
def begin(now: datetime) -> Round | None:
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


def end(begun: Round, answers: list[Answer], seconds: float) -> None:
    """Give the turn back: when the rate allows, or after a rest if there was nothing but silence."""
    turn, wait = begun.turn, timedelta(seconds=max(len(answers) / begun.per_second - seconds, 0))
    is_silent = bool(answers) and all(answer.said == Said.NO_ANSWER for answer in answers)
    silences = turn.silences + 1 if is_silent else 0
    if is_silent:
        log.warning("bank %s answered none of %d questions", turn.bank, len(answers))
        wait = max(wait, schedule.paced(RESTS[min(silences, len(RESTS)) - 1]))
    ours = Turn.objects.filter(pk=turn.pk, free_at=turn.free_at)
    ours.update(free_at=Now() + wait, silences=silences)
