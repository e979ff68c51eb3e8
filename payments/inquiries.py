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
from banks import Said, calling
from banks.calling import Timed
from core import origin
from core.slots import NoFreeSlot, Slots
from payments import cards
from payments.card_models import OPEN
from payments.models import CardCharge, ChargeAnswer
from transfers import breakers

log = logging.getLogger("payments")
# Longer than an inquiry can take, so that only those of a process that died come due by it.
LEASE = timedelta(seconds=120)
# Questions side by side, and no further ones after so many seconds.
LINES = 8
PATIENCE_SECONDS = 5.0
# Runs at once in one worker, and for one acquirer: the others go by where an acquirer is silent.
RUNS, RUNS_OF_ACQUIRER = 4, 2
_runs = Slots()


def inquire_due(*, now: Callable[[], datetime], limit: int = 50) -> int:
    """Inquire what is due, acquirer after acquirer; returns how many were asked about.

    May run many times at once: a run that waits for a silent acquirer leaves the others to the next run.
    """
    asked = 0
    for acquirer in sorted(cards.ACQUIRERS.values()):
        with suppress(NoFreeSlot), _runs.held(acquirer, total=RUNS, share=RUNS_OF_ACQUIRER):
            asked += _inquire_at(acquirer, now, limit - asked)
    return asked


def _inquire_at(acquirer: str, now: Callable[[], datetime], limit: int) -> int:
    asked, ends_at = 0, time.monotonic() + PATIENCE_SECONDS
    while asked < limit and time.monotonic() < ends_at:
        if breakers.open_until(cards.party(acquirer), now()) is not None:
            break
        charges = _claim(acquirer, min(LINES, limit - asked))
        if not charges:
            break
        asked += len(charges)
        _inquire(acquirer, charges, now)
    return asked


@transaction.atomic
def _claim(acquirer: str, limit: int) -> list[CardCharge]:
    """Due charges, leased to the caller by the database's clock. No two runs get the same."""
    open_charges = CardCharge.objects.filter(acquirer=acquirer, state__in=OPEN)
    due = open_charges.filter(due_at__lte=Now()).order_by("due_at")
    charges = list(due.select_for_update(skip_locked=True)[:limit])
    ours = CardCharge.objects.filter(pk__in=[charge.pk for charge in charges])
    ours.update(due_at=Now() + LEASE, inquiries=F("inquiries") + 1)
    return charges


def _inquire(acquirer: str, charges: list[CardCharge], now: Callable[[], datetime]) -> None:
    adapter = banks.acquirer(acquirer)
    calls = [
        partial(adapter.find, each.payment_id, charge_id=each.charge_id, since=each.created_at)
        for each in charges
    ]
    answers = calling.timed_at_once(calls, silence=Said("unknown"))
    for charge, answer in zip(charges, answers, strict=True):
        try:
            _settle(charge, answer, now())
        except Exception:
            log.exception("the answer about charge %s could not be kept", charge.payment_id)
    party = cards.party(acquirer)
    silences = [breakers.is_silence(answer.said.outcome, answer.seconds) for answer in answers]
    breakers.record([(party, is_silent) for is_silent in silences], now=now())


@transaction.atomic
def _settle(charge: CardCharge, answer: Timed[Said], at: datetime) -> None:
    payment = cards.settle(charge.payment_id, answer.said, now=at)
    if payment is not None:
        _keep(charge, answer.said, round(answer.seconds * 1000), at)


def _keep(charge: CardCharge, said: Said, took_ms: int, at: datetime) -> None:
    request_id = origin.current().request_id
    ChargeAnswer.objects.create(
        charge=charge, said=said.outcome, took_ms=took_ms, at=at, request_id=request_id
    )
