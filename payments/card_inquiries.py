"""Inquiries to acquirers about charges whose call was not answered, or whose process died."""

import logging
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import partial

from django.db import transaction
from django.db.models import F
from django.db.models.functions import Now

import banks
from banks import ChargeResult, parallel
from banks.parallel import TimedResult
from core import request_context
from core.work import due_work
from core.work.due_work import DueWork
from payments import cards
from payments.card_models import IS_INQUIRED
from payments.models import CardCharge, ChargeAnswer
from transfers import circuit_breakers

log = logging.getLogger("payments")
LEASE = timedelta(seconds=120)  # longer than an inquiry takes, so that it ends only for a process that died
_work = DueWork(max_runs=4, max_runs_of_one=2)


def inquire_due(*, now: Callable[[], datetime], limit: int = 50) -> int:
    """Inquire about the charges that are due. Returns how many.

    Several runs at once are safe: if one waits for a silent acquirer, another serves the other acquirer.
    """
    count = 0
    for acquirer in sorted(cards.ACQUIRERS.values()):
        claim, inquire = partial(_claim, acquirer, now), partial(_inquire, acquirer, now)
        count += _work.run(acquirer, claim, inquire, limit=limit - count)
    return count


def _claim(acquirer: str, now: Callable[[], datetime], limit: int) -> list[CardCharge]:
    if circuit_breakers.open_until(cards.counterparty(acquirer), now()) is not None:
        return []
    due = CardCharge.objects.filter(acquirer=acquirer, due_at__lte=Now()).filter(IS_INQUIRED)
    return due_work.claim(due.order_by("due_at"), limit, due_at=Now() + LEASE, inquiries=F("inquiries") + 1)


def _inquire(acquirer: str, now: Callable[[], datetime], charges: Sequence[CardCharge]) -> None:
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
            log.exception("the answer about charge %s could not be stored", charge.payment_id)
    party = cards.counterparty(acquirer)
    silences = [circuit_breakers.is_failure(answer.result.outcome, answer.seconds) for answer in answers]
    circuit_breakers.record_calls([(party, is_silent) for is_silent in silences], now=now())


@transaction.atomic
def _complete(charge: CardCharge, answer: TimedResult[ChargeResult], now: datetime) -> None:
    if cards.complete(charge.payment_id, answer.result, now=now) is not None:
        ChargeAnswer.objects.create(
            charge=charge,
            outcome=answer.result.outcome,
            duration_ms=round(answer.seconds * 1000),
            created_at=now,
            request_id=request_context.current().request_id,
        )
