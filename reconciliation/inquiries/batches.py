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
from reconciliation.inquiries import bank_calls, confirmation_inquiries, schedule
from reconciliation.inquiries.bank_calls import AnyInquiry, InquiryResponse
from reconciliation.inquiries.rate_limit import CallBudget
from reconciliation.inquiries.scan import OPEN_STATUSES
from reconciliation.models import Backoff, BankRateLimit, ConfirmationInquiry, Inquiry, InquiryOutcome

log = logging.getLogger("reconciliation")
# Longer than the calls of a round and what is written down after them.
LEASE = timedelta(seconds=60)
# Codes that somebody waits for, and the others.
PRIORITIES = (True, False)
# In each fourth round those come first that nobody waits for any more.
LOW_PRIORITY_FIRST_EVERY = 4
# For a bank, or one merchant of it, after the first round without any answer, the second and so on.
BACKOFFS = tuple(timedelta(seconds=seconds) for seconds in (1, 2, 5, 15))
# Most of what comes due has been paid by then, and is closed so many at a time in each lane.
MAX_EXAMINED = 500


@dataclass(frozen=True, slots=True)
class InquiryBatch:
    """Questions to one bank, which nobody else asks meanwhile.

    pause: after the last answer, until the bank may be asked again.
    """

    rate_limit: BankRateLimit
    inquiries: list[AnyInquiry]
    pause: timedelta


def due_inquiries(bank: str | OuterRef, now: datetime, *, is_urgent: bool) -> "QuerySet[Inquiry]":
    """What a bank is to be asked, or to be closed, and nobody has in hand: what waits longest first."""
    free = Q(lease_until__isnull=True) | Q(lease_until__lte=Now())
    return Inquiry.objects.filter(free, bank=bank, is_urgent=is_urgent, due_at__lte=now).order_by("due_at")


def available_banks(now: datetime) -> "QuerySet[BankRateLimit]":
    """Banks that may be asked and have something due, the longest free first."""
    # The first by the index: to find out that there is any, PostgreSQL would read them all.
    lanes = [
        Subquery(of(OuterRef("pk"), now, is_urgent=each).values(first=Cast("pk", TextField()))[:1])
        for of in (due_inquiries, confirmation_inquiries.due_inquiries)
        for each in PRIORITIES
    ]
    free = BankRateLimit.objects.filter(pk__in=banks.banks_with_inquiry(), available_at__lte=Now()).order_by(
        "available_at"
    )
    return free.alias(first=Coalesce(*lanes)).filter(first__isnull=False)


@transaction.atomic
def start(now: datetime) -> InquiryBatch | None:
    """A bank's turn and as many questions as fit into the calls that it takes in a second, but at least one.

    Leased by the database's clock.
    """
    rate_limit = available_banks(now).select_for_update(skip_locked=True, of=("self",)).first()
    if rate_limit is None:
        return None
    BankRateLimit.objects.filter(pk=rate_limit.pk).update(
        available_at=Now() + LEASE, batch_count=F("batch_count") + 1
    )
    rate_limit.refresh_from_db()
    budget = CallBudget(banks.banks_with_inquiry()[rate_limit.bank])
    inquiries = _select(rate_limit, now, budget)
    return InquiryBatch(
        rate_limit, inquiries, budget.pause([bank_calls.build_question(each, now) for each in inquiries])
    )


def _select(rate_limit: BankRateLimit, now: datetime, budget: CallBudget) -> list[AnyInquiry]:
    """From one lane, and what it leaves from the other; in most rounds first what somebody waits for."""
    paused = set(
        Backoff.objects.filter(bank=rate_limit.bank, retry_at__gt=now).values_list("merchant", flat=True)
    )
    picked: list[AnyInquiry] = []
    room = budget.max_calls
    for is_urgent in (
        PRIORITIES if rate_limit.batch_count % LOW_PRIORITY_FIRST_EVERY else reversed(PRIORITIES)
    ):
        waiting = due_inquiries(rate_limit.bank, now, is_urgent=is_urgent)
        reported = confirmation_inquiries.select_due(rate_limit.bank, paused, now, is_urgent=is_urgent)
        ready = _round_robin([*_select_open(waiting, paused, now), *reported])
        locked = _lock_due(waiting, ready[:room])
        costs = budget.fit([bank_calls.build_question(each, now) for each in locked], room)
        picked += locked[: len(costs)]
        room -= sum(costs)
    inquiries = [each.pk for each in picked if isinstance(each, Inquiry)]
    Inquiry.objects.filter(pk__in=inquiries).update(lease_until=Now() + LEASE)
    reports = [each.pk for each in picked if isinstance(each, ConfirmationInquiry)]
    ConfirmationInquiry.objects.filter(pk__in=reports).update(lease_until=Now() + LEASE)
    return picked


def _select_open(waiting: "QuerySet[Inquiry]", paused: set[str], now: datetime) -> list[Inquiry]:
    """Those that may be asked. Nobody asks about what was paid or declined meanwhile, or hurries for a payer
    who has gone; for a merchant that rests it is as if the bank had been asked in vain."""
    looked_at = list(waiting.select_related("payment")[:MAX_EXAMINED])
    still_open = [each for each in looked_at if each.payment.status in OPEN_STATUSES]
    ended = [each.pk for each in looked_at if each.payment.status not in OPEN_STATUSES]
    stale = {each.pk for each in still_open if each.is_urgent and not schedule.is_urgent(each.payment, now)}
    Inquiry.objects.filter(pk__in=ended).update(due_at=None)
    Inquiry.objects.filter(pk__in=stale).update(is_urgent=False)
    _postpone([each.pk for each in still_open if each.payment.merchant_id in paused], now)
    return [each for each in still_open if each.pk not in stale and each.payment.merchant_id not in paused]


def _postpone(payment_ids: list[str], now: datetime) -> None:
    """Locked before their payments are read: a code that ends early meanwhile is seen, or moves the inquiry
    after us. Nothing is given up that was not asked."""
    inquiries = list(Inquiry.objects.select_for_update().filter(pk__in=payment_ids))
    payments = Payment.objects.in_bulk(payment_ids)
    for each in inquiries:
        again_at = schedule.retry_at(now, schedule.inquiry_times(payments[each.pk]))
        each.due_at = again_at or now + schedule.scaled(schedule.LONGEST_WAIT)
    Inquiry.objects.bulk_update(inquiries, ["due_at"])


def _round_robin(inquiries: list[AnyInquiry]) -> list[AnyInquiry]:
    """One of each merchant, then a second of each and so on; among these, what waits longest first."""
    queues: defaultdict[str, list[AnyInquiry]] = defaultdict(list)
    for each in inquiries:
        queues[each.merchant_id].append(each)
    return [each for nth in zip_longest(*queues.values()) for each in nth if each is not None]


def _lock_due(waiting: "QuerySet[Inquiry]", ready: list[AnyInquiry]) -> list[AnyInquiry]:
    """Those that nobody has touched meanwhile, in the same order."""
    ours = waiting.filter(
        pk__in=[each.pk for each in ready if isinstance(each, Inquiry)], payment__status__in=OPEN_STATUSES
    )
    untouched = ours.select_related("payment__qr_code").select_for_update(skip_locked=True, of=("self",))
    reported = [each.pk for each in ready if isinstance(each, ConfirmationInquiry)]
    locked: dict[str | int, AnyInquiry] = dict(untouched.in_bulk())
    locked |= confirmation_inquiries.lock_due(reported)
    return [locked[each.pk] for each in ready if each.pk in locked]


def finish(batch: InquiryBatch, answers: list[InquiryResponse], now: datetime) -> None:
    """Give the turn back: when the rate allows, or after a rest if several merchants had nothing but silence.

    A merchant that alone had nothing but silence may have a dead link: only its own questions rest. The pause
    begins only now: a call that waited for a token, or for one before it, may just have been made.
    """
    rate_limit, wait = batch.rate_limit, batch.pause
    asked = list(zip((each.merchant_id for each in batch.inquiries), answers, strict=True))
    answered = {merchant for merchant, answer in asked if answer.outcome != InquiryOutcome.NO_ANSWER}
    silent = {merchant for merchant, _ in asked} - answered
    silent_batches = 0 if answered else rate_limit.silent_batches
    if not answered and len(silent) > 1:
        silent_batches += 1
        log.warning("bank %s answered none of %d questions", rate_limit.bank, len(answers))
        wait = max(wait, _backoff_wait(silent_batches))
    _update_backoffs(rate_limit.bank, answered, silent, now)
    ours = BankRateLimit.objects.filter(pk=rate_limit.pk, available_at=rate_limit.available_at)
    ours.update(available_at=Now() + wait, silent_batches=silent_batches)


def _update_backoffs(bank: str, answered: set[str], silent: set[str], now: datetime) -> None:
    """Of a merchant that had an answer nothing stays. Whoever has the bank's turn is alone here."""
    rests = Backoff.objects.filter(bank=bank)
    rests.filter(merchant__in=answered).delete()
    before = dict(rests.filter(merchant__in=silent).values_list("merchant", "silent_batches"))
    for merchant in sorted(silent):
        silent_batches = before.get(merchant, 0) + 1
        known = {"silent_batches": silent_batches, "retry_at": now + _backoff_wait(silent_batches)}
        Backoff.objects.update_or_create(bank=bank, merchant_id=merchant, defaults=known)


def _backoff_wait(silent_batches: int) -> timedelta:
    return schedule.scaled(BACKOFFS[min(silent_batches, len(BACKOFFS)) - 1])
