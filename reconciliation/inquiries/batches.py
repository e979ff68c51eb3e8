"""Batches of inquiries to one bank: which bank is next, which inquiries come first, and when the bank pauses.

Two limits apply, and each differs from the circuit breaker of transfers (`transfers.circuit_breakers`):
- `BankRateLimit` allows one batch at a time and a number of calls per second, as the bank's contract says.
- `Backoff` pauses one merchant after a batch in which all its inquiries were without an answer.
  A circuit breaker counts slow calls, and fast failures do not open it.
"""

import logging
from collections import Counter, defaultdict
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import zip_longest
from typing import Any, TypeVar

from django.db import transaction
from django.db.models import F, OuterRef, Q, QuerySet, Subquery, TextField
from django.db.models.functions import Cast, Coalesce, Now

import banks
from core.database import rows
from core.work import due_work
from merchants.models import Merchant
from payments.models import Payment
from reconciliation.inquiries import bank_calls, schedule, standby
from reconciliation.inquiries.bank_calls import AnyInquiry, InquiryResponse
from reconciliation.inquiries.rate_limit import CallBudget
from reconciliation.inquiries.scan import IN_ORDER, OPEN_STATUSES
from reconciliation.models import Backoff, BankRateLimit, ConfirmationInquiry, Inquiry, InquiryOutcome

log = logging.getLogger("reconciliation")
LEASE = timedelta(seconds=60)  # longer than the calls of a batch, and storing their results
PRIORITIES = (True, False)  # values of `is_urgent`: inquiries that a payer may wait for, and the others
# In each fourth batch, the inquiries that are not urgent come first.
LOW_PRIORITY_FIRST_EVERY = 4
# The pause of a bank, or of one merchant, after the first batch without any answer, the second and so on.
BACKOFFS = tuple(timedelta(seconds=seconds) for seconds in (1, 2, 5, 15))
# Most payments are paid when their inquiry comes due. A batch closes at most 500 of each priority.
MAX_EXAMINED = 500
EXAMINED = ["is_urgent", *(f"payment__{name}" for name in ("status", "merchant", "created_at", "expires_at"))]
# The next time of a confirmation inquiry while its merchant is paused, which takes 1 to 15 s.
PAUSED_DELAY = timedelta(seconds=5)
I = TypeVar("I", Inquiry, ConfirmationInquiry)  # noqa: E741


@dataclass(frozen=True, slots=True)
class InquiryBatch:
    """Inquiries to one bank. No other worker calls the bank meanwhile."""

    rate_limit: BankRateLimit
    inquiries: list[AnyInquiry]
    pause: timedelta  # from the last answer until the bank may be called again


def due_inquiries(model: type[I], bank: str | OuterRef, now: datetime, *, is_urgent: bool) -> "QuerySet[I]":
    """Return the inquiries of one priority that are due at a bank and not leased, the longest due first."""
    due = model._default_manager.filter(due_work.UNLEASED, bank=bank, is_urgent=is_urgent, due_at__lte=now)
    return due.order_by("due_at")


def available_banks(now: datetime) -> "QuerySet[BankRateLimit]":
    """Return the banks that may be called and have due inquiries, the longest available first."""
    # The first row comes from the index. For EXISTS, PostgreSQL reads all due inquiries.
    first_due = [
        Subquery(queryset.values(first=Cast("pk", TextField()))[:1])
        for is_urgent in PRIORITIES
        for queryset in (
            due_inquiries(Inquiry, OuterRef("pk"), now, is_urgent=is_urgent),
            due_inquiries(ConfirmationInquiry, OuterRef("pk"), now, is_urgent=is_urgent),
        )
    ]
    available = BankRateLimit.objects.filter(pk__in=banks.configured_banks(), available_at__lte=Now())
    return available.alias(first=Coalesce(*first_due)).filter(first__isnull=False).order_by("available_at")


@transaction.atomic
def start(now: datetime) -> InquiryBatch | None:
    """Claim a bank, and the inquiries that fit into its calls per second, but at least one."""
    rate_limit = available_banks(now).select_for_update(skip_locked=True, of=("self",)).first()
    if rate_limit is None:
        return None
    BankRateLimit.objects.filter(pk=rate_limit.pk).update(
        available_at=Now() + LEASE, batch_count=F("batch_count") + 1
    )
    rate_limit.refresh_from_db()
    rows.run(IN_ORDER, ())
    budget = CallBudget(banks.configured_banks()[rate_limit.bank])
    inquiries = _select(rate_limit, now, budget)
    return InquiryBatch(
        rate_limit, inquiries, budget.pause([bank_calls.build_question(each, now) for each in inquiries])
    )


def _select(rate_limit: BankRateLimit, now: datetime, budget: CallBudget) -> list[AnyInquiry]:
    """Lease inquiries of one priority first, and fill the budget with the other."""
    pauses = Backoff.objects.filter(bank=rate_limit.bank, retry_at__gt=now)
    at_bank = Q(bank=rate_limit.bank) | Q(standby_bank=rate_limit.bank)
    moved = Merchant.objects.filter(at_bank, moved_at__isnull=False)
    paused = {*pauses.values_list("merchant", flat=True), *moved.values_list("pk", flat=True)}
    is_usual = rate_limit.batch_count % LOW_PRIORITY_FIRST_EVERY
    picked: list[AnyInquiry] = []
    room = budget.max_calls
    for is_urgent in PRIORITIES if is_usual else reversed(PRIORITIES):
        due = due_inquiries(Inquiry, rate_limit.bank, now, is_urgent=is_urgent)
        confirmations = due_inquiries(ConfirmationInquiry, rate_limit.bank, now, is_urgent=is_urgent)
        ready: list[AnyInquiry] = [
            *_select_open(due, paused, now),
            *_select_confirmations(confirmations, paused, now),
        ]
        locked = _lock_due(_round_robin(ready)[:room], now)
        costs = budget.fit([bank_calls.build_question(each, now) for each in locked], room)
        picked += locked[: len(costs)]
        room -= sum(costs)
    for model in (Inquiry, ConfirmationInquiry):
        ours = model.objects.filter(pk__in=[each.pk for each in picked if isinstance(each, model)])
        ours.update(lease_until=Now() + LEASE)
    return picked


def _select_open(due: "QuerySet[Inquiry]", paused: set[str], now: datetime) -> list[Inquiry]:
    """Return the inquiries to make, and update the others.

    An inquiry ends when its payment has ended. It loses its priority when the payer has gone. While its
    merchant is paused, its next time is that of an inquiry without an answer.
    """
    examined = list(due.select_related("payment").only(*EXAMINED)[:MAX_EXAMINED])
    still_open = [each for each in examined if each.payment.status in OPEN_STATUSES]
    ended = [each.pk for each in examined if each.payment.status not in OPEN_STATUSES]
    stale = {each.pk for each in still_open if each.is_urgent and not schedule.is_urgent(each.payment, now)}
    Inquiry.objects.filter(pk__in=ended).update(due_at=None)
    Inquiry.objects.filter(pk__in=stale).update(is_urgent=False)
    _postpone([each.pk for each in still_open if each.payment.merchant_id in paused], now)
    return [each for each in still_open if each.pk not in stale and each.payment.merchant_id not in paused]


def _postpone(payment_ids: list[str], now: datetime) -> None:
    """Set the next times. An inquiry that was not made never ends here.

    Lock the inquiries before reading their payments. If a code ends early at the same moment, either the new
    expiry is read here, or its trigger sets the next time after this transaction.
    """
    inquiries = list(Inquiry.objects.select_for_update().filter(pk__in=payment_ids))
    payments = Payment.objects.in_bulk(payment_ids)
    for each in inquiries:
        again_at = schedule.retry_at(now, schedule.inquiry_times(payments[each.pk]))
        each.due_at = again_at or now + schedule.scaled(schedule.LONGEST_WAIT)
    Inquiry.objects.bulk_update(inquiries, ["due_at"])


def _select_confirmations(
    due: "QuerySet[ConfirmationInquiry]", paused: set[str], now: datetime
) -> list[ConfirmationInquiry]:
    """Return the inquiries to make. Those of paused merchants are due again after 5 s."""
    examined = list(due[:MAX_EXAMINED])
    postponed = [each.pk for each in examined if each.merchant_id in paused]
    ConfirmationInquiry.objects.filter(pk__in=postponed).update(due_at=now + schedule.scaled(PAUSED_DELAY))
    return [each for each in examined if each.merchant_id not in paused]


def _round_robin(inquiries: list[AnyInquiry]) -> list[AnyInquiry]:
    """Return the first inquiry of each merchant, then the second of each and so on."""
    queues: defaultdict[str, list[AnyInquiry]] = defaultdict(list)
    for each in inquiries:
        queues[each.merchant_id].append(each)
    return [each for nth in zip_longest(*queues.values()) for each in nth if each is not None]


def _lock_due(ready: list[AnyInquiry], now: datetime) -> list[AnyInquiry]:
    """Lock the inquiries that are still due, and return them in the same order.

    The statement has their keys alone: without statistics PostgreSQL would read all that are due for these.
    """
    still_open = Inquiry.objects.filter(payment__status__in=OPEN_STATUSES).select_related("payment__qr_code")
    locked: dict[str | int, AnyInquiry] = {}
    for queryset in (still_open, ConfirmationInquiry.objects.all()):
        ids: list[Any] = [each.pk for each in ready if isinstance(each, queryset.model)]
        free = queryset.filter(due_work.UNLEASED, pk__in=ids)
        found = free.select_for_update(skip_locked=True, of=("self",))
        locked |= {each.pk: each for each in found if each.due_at is not None and each.due_at <= now}
    return [locked[each.pk] for each in ready if each.pk in locked]


def finish(batch: InquiryBatch, answers: list[InquiryResponse], now: datetime) -> None:
    """Set when the bank may be called again. Wait longer if it answered no inquiry of several merchants.

    If only one merchant got no answers, its connection may be broken, so only its own inquiries pause. The
    pause starts now, because a call may have waited for an access token and been sent only now.
    """
    rate_limit, wait = batch.rate_limit, batch.pause
    results = list(zip((each.merchant_id for each in batch.inquiries), answers, strict=True))
    answered = {merchant for merchant, answer in results if answer.outcome != InquiryOutcome.NO_ANSWER}
    silent = {merchant for merchant, _ in results} - answered
    silent_batches = 0 if answered else rate_limit.silent_batches
    if not answered and len(silent) > 1:
        silent_batches += 1
        log.warning("bank %s answered none of %d inquiries", rate_limit.bank, len(answers))
        wait = max(wait, _backoff_wait(silent_batches))
    _update_backoffs(rate_limit.bank, answered, silent, now)
    ours = BankRateLimit.objects.filter(pk=rate_limit.pk, available_at=rate_limit.available_at)
    ours.update(available_at=Now() + wait, silent_batches=silent_batches)
    if silent:
        refused = {merchant for merchant, answer in results if answer.failure == "credentials"}
        unanswered = Counter(merchant for merchant, _ in results if merchant in silent)
        standby.leave(
            rate_limit.bank, unanswered, is_bank_silent=not answered and len(silent - refused) > 1, now=now
        )


def _update_backoffs(bank: str, answered: set[str], silent: set[str], now: datetime) -> None:
    """Count the batches in a row without an answer for each merchant. The caller holds the bank's lease."""
    backoffs = Backoff.objects.filter(bank=bank)
    backoffs.filter(merchant__in=answered).delete()
    before = dict(backoffs.filter(merchant__in=silent).values_list("merchant", "silent_batches"))
    for merchant in sorted(silent):
        silent_batches = before.get(merchant, 0) + 1
        changes = {"silent_batches": silent_batches, "retry_at": now + _backoff_wait(silent_batches)}
        Backoff.objects.update_or_create(bank=bank, merchant_id=merchant, defaults=changes)


def _backoff_wait(silent_batches: int) -> timedelta:
    return schedule.scaled(due_work.interval(BACKOFFS, silent_batches - 1))
