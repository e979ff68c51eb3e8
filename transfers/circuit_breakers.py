"""Circuit breakers: calls to a counterparty stop for a while after several calls without an answer.

A counterparty is an acquirer, or a bank for one merchant: each merchant has its own credentials there, and
broken ones must not delay other merchants. Inquiries about payments have other rules, see
`reconciliation.inquiries.batches`.
"""

import logging
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import QuerySet

from core.work import due_work
from transfers.models import CircuitBreaker

log = logging.getLogger("transfers")
# Failures in a row that open the circuit. One answer closes it.
FAILURES_TO_OPEN = 3
# How long the circuit stays open the first time, the second time and so on.
OPEN_PERIODS = tuple(timedelta(seconds=seconds) for seconds in (5, 10, 20, 30))
SLOW_CALL_SECONDS = 1.0  # Only slow calls delay others. A quick answer that cannot be read is no failure.


@dataclass(frozen=True, slots=True)
class Counterparty:
    """A route such as acquirer:omise, and for a bank the merchant."""

    route: str
    merchant_id: str = ""

    @classmethod
    def of(cls, route: str, merchant_id: str) -> "Counterparty":
        """Return the counterparty of a merchant. An acquirer has one account for all merchants."""
        return cls(route, merchant_id if route.startswith("bank:") else "")


def is_failure(result: str, seconds: float) -> bool:
    """Return whether a call with this result status and duration counts as unanswered."""
    return result == "unknown" and seconds >= SLOW_CALL_SECONDS


def open_circuits(route: str, now: datetime) -> set[str]:
    """Return the merchants for whom `route` must not be called. "" means all merchants of an acquirer."""
    is_open = CircuitBreaker.objects.filter(route=route, open_until__gt=now)
    return set(is_open.values_list("merchant_id", flat=True))


def open_until(counterparty: Counterparty, now: datetime) -> datetime | None:
    """Return when it may be called again, or None if it may be called now."""
    open_breakers = _breakers_of(counterparty).filter(open_until__gt=now)
    return open_breakers.values_list("open_until", flat=True).first()


def record_calls(calls: Iterable[tuple[Counterparty, bool]], *, now: datetime) -> None:
    """Count calls in separate commits. Each call is a counterparty and whether the call failed."""
    failures: defaultdict[Counterparty, list[bool]] = defaultdict(list)
    for counterparty, is_failed in calls:
        failures[counterparty].append(is_failed)
    for counterparty, results in failures.items():
        if all(results):
            _count_failures(counterparty, len(results), now)
        else:
            _breakers_of(counterparty).delete()


def _breakers_of(counterparty: Counterparty) -> "QuerySet[CircuitBreaker]":
    return CircuitBreaker.objects.filter(route=counterparty.route, merchant_id=counterparty.merchant_id)


@transaction.atomic
def _count_failures(counterparty: Counterparty, failures: int, now: datetime) -> None:
    key = {"route": counterparty.route, "merchant_id": counterparty.merchant_id}
    CircuitBreaker.objects.bulk_create([CircuitBreaker(first_failed_at=now, **key)], ignore_conflicts=True)
    breaker = _breakers_of(counterparty).select_for_update().first()
    if breaker is None:  # an answer to another call has just closed it
        return
    breaker.failures += failures
    is_open = breaker.open_until is not None and breaker.open_until > now
    if breaker.failures >= FAILURES_TO_OPEN and not is_open:
        period = due_work.interval(OPEN_PERIODS, breaker.openings)
        breaker.openings, breaker.open_until = breaker.openings + 1, now + period
        log.warning("%s does not answer: no calls for %s", breaker, period)
    breaker.save()
