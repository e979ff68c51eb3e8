"""Rounds of questions to a bank: whose turn it is, what is asked first, and when the bank rests."""

import logging
from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import zip_longest

from django.db import transaction
from django.db.models import F, OuterRef, Q, QuerySet, Subquery, TextField
from django.db.models.functions import Cast, Coalesce, Now

import banks
from payments.models import Payment
from receipts import confirmation_inquiries, questions, schedule
from receipts.enrolment import OPEN
from receipts.models import ConfirmationInquiry, Inquiry, Rest, Said, Turn
from receipts.pace import Pace
from receipts.questions import Answer, Asked

log = logging.getLogger("receipts")
# Longer than the calls of a round and what is written down after them.
LEASE = timedelta(seconds=60)
# Codes that somebody waits for, and the others.
LANES = (True, False)
# In each fourth round those come first that nobody waits for any more.
OTHERS_EVERY = 4
# For a bank, or one merchant of it, after the first round without any answer, the second and so on.
RESTS = tuple(timedelta(seconds=seconds) for seconds in (1, 2, 5, 15))
# Most of what comes due has been paid by then, and is closed so many at a time in each lane.
LOOKED_AT = 500


@dataclass(frozen=True, slots=True)
class Round:
    """Questions to one bank, which nobody else asks meanwhile.

    pause: after the last answer, until the bank may be asked again.
    """

    turn: Turn
    inquiries: list[Asked]
    pause: timedelta


def lane(bank: str | OuterRef, now: datetime, *, is_fresh: bool) -> "QuerySet[Inquiry]":
    """What a bank is to be asked, or to be closed, and nobody has in hand: what waits longest first."""
    free = Q(lease_until__isnull=True) | Q(lease_until__lte=Now())
    return Inquiry.objects.filter(free, bank=bank, is_fresh=is_fresh, due_at__lte=now).order_by("due_at")


def free_turns(now: datetime) -> "QuerySet[Turn]":
    """Banks that may be asked and have something due, the longest free first."""
    # The first by the index: to find out that there is any, PostgreSQL would read them all.
    lanes = [
        Subquery(of(OuterRef("pk"), now, is_fresh=each).values(first=Cast("pk", TextField()))[:1])
        for of in (lane, confirmation_inquiries.lane)
        for each in LANES
    ]
    free = Turn.objects.filter(pk__in=banks.asked(), free_at__lte=Now()).order_by("free_at")
    return free.alias(first=Coalesce(*lanes)).filter(first__isnull=False)


@transaction.atomic
def begin(now: datetime) -> Round | None:
    """A bank's turn and as many questions as fit into the calls that it takes in a second, but at least one.

    Leased by the database's clock.
    """
    turn = free_turns(now).select_for_update(skip_locked=True, of=("self",)).first()
    if turn is None:
        return None
    Turn.objects.filter(pk=turn.pk).update(free_at=Now() + LEASE, rounds=F("rounds") + 1)
    turn.refresh_from_db()
    pace = Pace(banks.asked()[turn.bank])
    inquiries = _pick(turn, now, pace)
    return Round(turn, inquiries, pace.pause([questions.of(each, now) for each in inquiries]))


def _pick(turn: Turn, now: datetime, pace: Pace) -> list[Asked]:
    """From one lane, and what it leaves from the other; in most rounds first what somebody waits for."""
    resting = set(Rest.objects.filter(bank=turn.bank, until__gt=now).values_list("merchant", flat=True))
    picked: list[Asked] = []
    room = pace.room
    for is_fresh in LANES if turn.rounds % OTHERS_EVERY else reversed(LANES):
        waiting = lane(turn.bank, now, is_fresh=is_fresh)
        reported = confirmation_inquiries.ready(turn.bank, resting, now, is_fresh=is_fresh)
        ready = _by_merchants_turns([*_sort_out(waiting, resting, now), *reported])
        locked = _lock(waiting, ready[:room])
        costs = pace.fitting([questions.of(each, now) for each in locked], room)
        picked += locked[: len(costs)]
        room -= sum(costs)
    inquiries = [each.pk for each in picked if isinstance(each, Inquiry)]
    Inquiry.objects.filter(pk__in=inquiries).update(lease_until=Now() + LEASE)
    reports = [each.pk for each in picked if isinstance(each, ConfirmationInquiry)]
    ConfirmationInquiry.objects.filter(pk__in=reports).update(lease_until=Now() + LEASE)
    return picked


def _sort_out(waiting: "QuerySet[Inquiry]", resting: set[str], now: datetime) -> list[Inquiry]:
    """Those that may be asked. Nobody asks about what was paid or declined meanwhile, or hurries for a payer
    who has gone; for a merchant that rests it is as if the bank had been asked in vain."""
    looked_at = list(waiting.select_related("payment")[:LOOKED_AT])
    still_open = [each for each in looked_at if each.payment.status in OPEN]
    ended = [each.pk for each in looked_at if each.payment.status not in OPEN]
    stale = {each.pk for each in still_open if each.is_fresh and not schedule.is_fresh(each.payment, now)}
    Inquiry.objects.filter(pk__in=ended).update(due_at=None)
    Inquiry.objects.filter(pk__in=stale).update(is_fresh=False)
    _put_off([each.pk for each in still_open if each.payment.merchant_id in resting], now)
    return [each for each in still_open if each.pk not in stale and each.payment.merchant_id not in resting]


def _put_off(payment_ids: list[str], now: datetime) -> None:
    """Locked before their payments are read: a code that ends early meanwhile is seen, or moves the inquiry
    after us. Nothing is given up that was not asked."""
    inquiries = list(Inquiry.objects.select_for_update().filter(pk__in=payment_ids))
    payments = Payment.objects.in_bulk(payment_ids)
    for each in inquiries:
        again_at = schedule.again_after(now, schedule.of(payments[each.pk]))
        each.due_at = again_at or now + schedule.paced(schedule.LONGEST_WAIT)
    Inquiry.objects.bulk_update(inquiries, ["due_at"])


def _by_merchants_turns(inquiries: list[Asked]) -> list[Asked]:
    """One of each merchant, then a second of each and so on; among these, what waits longest first."""
    queues: defaultdict[str, list[Asked]] = defaultdict(list)
    for each in inquiries:
        queues[each.merchant_id].append(each)
    return [each for nth in zip_longest(*queues.values()) for each in nth if each is not None]


def _lock(waiting: "QuerySet[Inquiry]", ready: list[Asked]) -> list[Asked]:
    """Those that nobody has touched meanwhile, in the same order."""
    ours = waiting.filter(
        pk__in=[each.pk for each in ready if isinstance(each, Inquiry)], payment__status__in=OPEN
    )
    untouched = ours.select_related("payment__qr_code").select_for_update(skip_locked=True, of=("self",))
    reported = [each.pk for each in ready if isinstance(each, ConfirmationInquiry)]
    locked: dict[str | int, Asked] = dict(untouched.in_bulk())
    locked |= confirmation_inquiries.locked(reported)
    return [locked[each.pk] for each in ready if each.pk in locked]


def end(begun: Round, answers: list[Answer], now: datetime) -> None:
    """Give the turn back: when the rate allows, or after a rest if several merchants had nothing but silence.

    A merchant that alone had nothing but silence may have a dead link: only its own questions rest. The pause
    begins only now: a call that waited for a token, or for one before it, may just have been made.
    """
    turn, wait = begun.turn, begun.pause
    asked = list(zip((each.merchant_id for each in begun.inquiries), answers, strict=True))
    heard = {merchant for merchant, answer in asked if answer.said != Said.NO_ANSWER}
    silent = {merchant for merchant, _ in asked} - heard
    silences = 0 if heard else turn.silences
    if not heard and len(silent) > 1:
        silences += 1
        log.warning("bank %s answered none of %d questions", turn.bank, len(answers))
        wait = max(wait, _rest(silences))
    _note_silence(turn.bank, heard, silent, now)
    ours = Turn.objects.filter(pk=turn.pk, free_at=turn.free_at)
    ours.update(free_at=Now() + wait, silences=silences)


def _note_silence(bank: str, heard: set[str], silent: set[str], now: datetime) -> None:
    """Of a merchant that had an answer nothing stays. Whoever has the bank's turn is alone here."""
    rests = Rest.objects.filter(bank=bank)
    rests.filter(merchant__in=heard).delete()
    before = dict(rests.filter(merchant__in=silent).values_list("merchant", "silences"))
    for merchant in sorted(silent):
        silences = before.get(merchant, 0) + 1
        known = {"silences": silences, "until": now + _rest(silences)}
        Rest.objects.update_or_create(bank=bank, merchant_id=merchant, defaults=known)


def _rest(silences: int) -> timedelta:
    return schedule.paced(RESTS[min(silences, len(RESTS)) - 1])
