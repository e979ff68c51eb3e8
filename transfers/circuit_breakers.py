"""Circuit breakers: a counterparty that stays silent is left alone for a while, and others are served.

A counterparty is an acquirer, or a bank as one merchant knows it: each merchant has credentials of its own
there, and dead ones are no reason to leave the others waiting.
"""

import logging
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction

from core import due_work
from transfers.models import CircuitBreaker

log = logging.getLogger("transfers")
# Calls in a row that ended in silence, and how long the counterparty then rests: the first time, the second
# and so on. One answer closes the circuit.
FAILURES_TO_OPEN = 3
OPEN_PERIODS = tuple(timedelta(seconds=seconds) for seconds in (5, 10, 20, 30))
# An answer that nobody can read is no silence: what hurts others is a call that takes long.
SLOW_CALL_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Counterparty:
    """Who is called: a route such as acquirer:omise, and at a bank for which merchant."""

    route: str
    merchant_id: str = ""

    @classmethod
    def of(cls, route: str, merchant_id: str) -> "Counterparty":
        """An acquirer has one account for all merchants."""
        return cls(route, merchant_id if route.startswith("bank:") else "")


def is_failure(said: str, seconds: float) -> bool:
    """Whether a call that said this after so many seconds was not answered."""
    return said == "unknown" and seconds >= SLOW_CALL_SECONDS


def open_circuits(route: str, now: datetime) -> set[str]:
    """The merchants for whom `route` is not called at `now`; the empty name stands for all at an acquirer."""
    is_open = CircuitBreaker.objects.filter(route=route, open_until__gt=now)
    return set(is_open.values_list("merchant_id", flat=True))


def open_until(party: Counterparty, now: datetime) -> datetime | None:
    """When it may be called again; None: now."""
    is_open = CircuitBreaker.objects.filter(route=party.route, merchant_id=party.merchant_id)
    return is_open.filter(open_until__gt=now).values_list("open_until", flat=True).first()


def record_calls(calls: Iterable[tuple[Counterparty, bool]], *, now: datetime) -> None:
    """Count what came of calls: each is a party and whether it was silent. In commits of its own."""
    found: defaultdict[Counterparty, list[bool]] = defaultdict(list)
    for party, is_silent in calls:
        found[party].append(is_silent)
    for party, silences in found.items():
        if all(silences):
            _count_failures(party, len(silences), now)
        else:
            CircuitBreaker.objects.filter(route=party.route, merchant_id=party.merchant_id).delete()


@transaction.atomic
def _count_failures(party: Counterparty, failures: int, now: datetime) -> None:
    new = CircuitBreaker(route=party.route, merchant_id=party.merchant_id, first_failed_at=now)
    CircuitBreaker.objects.bulk_create([new], ignore_conflicts=True)
    ours = CircuitBreaker.objects.select_for_update()
    breaker = ours.filter(route=party.route, merchant_id=party.merchant_id).first()
    if breaker is None:  # an answer to another call has just closed it
        return
    breaker.failures += failures
    is_resting = breaker.open_until is not None and breaker.open_until > now
    if breaker.failures >= FAILURES_TO_OPEN and not is_resting:
        rest = due_work.interval(OPEN_PERIODS, breaker.openings)
        breaker.openings, breaker.open_until = breaker.openings + 1, now + rest
        log.warning("%s is silent and rests for %s", breaker, rest)
    breaker.save()
