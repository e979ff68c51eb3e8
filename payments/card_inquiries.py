"""Ask acquirers what became of charges whose call was not answered, or whose process died."""

import logging
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial

from django.db import transaction
from django.db.models import F
from django.db.models.functions import Now

import banks
from banks import ChargeResult, parallel
from banks.parallel import TimedResult
from core import request_context
from core.bulkhead import Bulkhead, BulkheadFull
from payments import cards
from payments.card_models import OPEN_STATES
from payments.models import CardCharge, ChargeAnswer
from transfers import circuit_breakers

log = logging.getLogger("payments")
# Longer than an inquiry can take, so that only those of a process that died come due by it.
LEASE = timedelta(seconds=120)
# Questions side by side, and no further ones after so many seconds.
MAX_CALLS = 8
RUN_SECONDS = 5.0
# Runs at once in one worker, and for one acquirer: the others go by where an acquirer is silent.
MAX_RUNS, MAX_RUNS_OF_ACQUIRER = 4, 2
_runs = Bulkhead()


def inquire_due(*, now: Callable[[], datetime], limit: int = 50) -> int:
    """Inquire what is due, acquirer after acquirer; returns how many were asked about.

    May run many times at once: a run that waits for a silent acquirer leaves the others to the next run.
    """
    asked = 0
    for acquirer in sorted(cards.ACQUIRERS.values()):
        with suppress(BulkheadFull), _runs.hold(acquirer, total=MAX_RUNS, share=MAX_RUNS_OF_ACQUIRER):
            asked += _inquire_acquirer(acquirer, now, limit - asked)
    return asked


def _inquire_acquirer(acquirer: str, now: Callable[[], datetime], limit: int) -> int:
    asked, ends_at = 0, time.monotonic() + RUN_SECONDS
    while asked < limit and time.monotonic() < ends_at:
        if circuit_breakers.open_until(cards.counterparty(acquirer), now()) is not None:
            break
        charges = _claim(acquirer, min(MAX_CALLS, limit - asked))
        if not charges:
            break
        asked += len(charges)
        _inquire(acquirer, charges, now)
    return asked


@transaction.atomic
def _claim(acquirer: str, limit: int) -> list[CardCharge]:
    """Due charges, leased to the caller by the database's clock. No two runs get the same."""
    open_charges = CardCharge.objects.filter(acquirer=acquirer, state__in=OPEN_STATES)
    due = open_charges.filter(due_at__lte=Now()).order_by("due_at")
    charges = list(due.select_for_update(skip_locked=True)[:limit])
    ours = CardCharge.objects.filter(pk__in=[charge.pk for charge in charges])
    ours.update(due_at=Now() + LEASE, inquiries=F("inquiries") + 1)
    return charges


def _inquire(acquirer: str, charges: list[CardCharge], now: Callable[[], datetime]) -> None:
    adapter = banks.acquirer(acquirer)
    calls = [
        partial(adapter.find, each.payment_id, charge_id=each.charge_id, starts_at=each.created_at)
        for each in charges
    ]
    answers = parallel.run_all_timed(calls, default=ChargeResult("unknown"))
    for charge, answer in zip(charges, answers, strict=True):
        try:
            _complete(charge, answer, now())
        except Exception:
            log.exception("the answer about charge %s could not be kept", charge.payment_id)
    party = cards.counterparty(acquirer)
    silences = [circuit_breakers.is_failure(answer.result.outcome, answer.seconds) for answer in answers]
    circuit_breakers.record_calls([(party, is_silent) for is_silent in silences], now=now())


@transaction.atomic
def _complete(charge: CardCharge, answer: TimedResult[ChargeResult], at: datetime) -> None:
    payment = cards.complete(charge.payment_id, answer.result, now=at)
    if payment is not None:
        _store_answer(charge, answer.result, round(answer.seconds * 1000), at)


def _store_answer(charge: CardCharge, said: ChargeResult, duration_ms: int, at: datetime) -> None:
    request_id = request_context.current().request_id
    ChargeAnswer.objects.create(
        charge=charge, outcome=said.outcome, duration_ms=duration_ms, created_at=at, request_id=request_id
    )
