"""The measurement: whole lives with more and more payments at once, deliveries, then codes.

Codes come last: each of them waits for its customer, so the workers ask the bank about it.
"""

import itertools
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from django.conf import settings
from django.db import connections

from config.capacity import growth, load, progress, publishing
from config.capacity.database import Addresses
from config.capacity.deliveries import Arrivals
from config.capacity.growth import Size
from config.capacity.lives import Lives, LivesResult, quantile
from config.capacity.load import LoadResult, NotMeasurable
from config.capacity.sampling import Sampler, Samples, core_count
from config.capacity.shops import Bank, Shop

SHOPS = 20
AT_ONCE = (1, 4, 16, 48)
CODES_AT_ONCE = 16
LIVES_SHARE, DELIVERIES_SHARE, CODES_SHARE = 0.5, 0.2, 0.3
# Sessions plan each statement several times, and webhooks are verified.
LONGEST_WARM_UP_SECONDS = 3.0
FIRST_MESSAGES = 300
MOST_MESSAGES = 100_000


@dataclass(frozen=True)
class Step:
    """Whole lives with so many payments at once, and what machine and database did meanwhile."""

    at_once: int
    result: LivesResult
    samples: Samples

    @property
    def rate(self) -> float:
        return self.result.rate

    @property
    def request_p99(self) -> float:
        """Milliseconds."""
        return quantile(self.result.all_requests, 0.99)

    @property
    def webhook_p99(self) -> float:
        """Milliseconds from the code to its webhook."""
        return quantile(self.result.webhooks, 0.99)


@dataclass(frozen=True)
class Deliveries:
    rate: float
    samples: Samples


@dataclass(frozen=True)
class Codes:
    result: LoadResult
    samples: Samples

    @property
    def rate(self) -> float:
        return self.result.rate


@dataclass(frozen=True)
class Figures:
    """All that was measured. growth: of all lives. phases: their names and begins, for the plot over time."""

    cores: int
    web_workers: int
    has_local_postgres: bool
    commit_ms: float
    steps: list[Step]
    deliveries: Deliveries
    codes: Codes
    growth: Size
    lives: int
    samples: Samples
    phases: list[tuple[str, float]]

    @property
    def best(self) -> Step:
        """The step with the most whole lives a second."""
        return max(self.steps, key=lambda step: step.rate)


class Measurement:
    """One run on processes that are ready."""

    def __init__(self, databases: Addresses, environ: Mapping[str, str], seconds: float) -> None:
        self._databases, self._seconds = databases, seconds
        self._port = int(environ["PORT"])
        self._bank = Bank(environ["SANDBOX_BANK_SECRET"].encode())
        self._phases: list[tuple[str, float]] = []

    def run(self, pids: Mapping[str, int]) -> Figures:
        """Raises NotMeasurable."""
        with progress.step("a commit"):
            commit_ms = growth.commit_milliseconds(self._databases.owner)
        with Sampler(self._databases.service, pids) as sampler, Lives(self._port, self._bank, SHOPS) as lives:
            shops = [publishing.open_shop(url) for url in lives.urls]
            lives.open(shops)
            before = growth.measure(self._databases.owner)
            steps = list(self._steps(lives, sampler))
            grown = growth.measure(self._databases.owner).since(before)
            deliveries = self._deliveries(sampler)
            codes = self._codes(shops, sampler)
        return Figures(
            core_count(),
            settings.WEB_WORKERS,
            sampler.postgres_pid is not None,
            commit_ms,
            steps,
            deliveries,
            codes,
            grown,
            len(lives.payment_ids),
            sampler.samples,
            self._phases,
        )

    def _steps(self, lives: Lives, sampler: Sampler) -> Iterator[Step]:
        seconds = self._seconds * LIVES_SHARE / len(AT_ONCE)
        with progress.step("warming up"):
            self._begin("warm-up")
            lives.closed_loop(seconds=min(LONGEST_WARM_UP_SECONDS, seconds), at_once=AT_ONCE[1])
        for at_once in AT_ONCE:
            with progress.step(f"whole lives, {at_once} at once", seconds):
                began = self._begin(f"{at_once} at once")
                result = lives.closed_loop(seconds=seconds, at_once=at_once)
                yield Step(at_once, result, sampler.samples.between(began, began + result.seconds))

    def _deliveries(self, sampler: Sampler) -> Deliveries:
        """A first batch says how many messages take the time."""
        seconds = self._seconds * DELIVERIES_SHARE
        with Arrivals() as arrivals, progress.step("deliveries", seconds):
            merchant_id = publishing.open_shop(arrivals.url).merchant_id
            publish = partial(_publish, merchant_id)
            first = arrivals.rate(FIRST_MESSAGES, publish)
            began = self._begin("deliveries")
            rate = arrivals.rate(min(MOST_MESSAGES, max(FIRST_MESSAGES, int(first * seconds))), publish)
            return Deliveries(rate, sampler.samples.between(began, time.perf_counter()))

    def _codes(self, shops: list[Shop], sampler: Sampler) -> Codes:
        seconds = self._seconds * CODES_SHARE
        requests = (shop.creation().to_bytes() for shop in itertools.cycle(shops))
        with progress.step(f"codes, {CODES_AT_ONCE} at once", seconds):
            began = self._begin("codes")
            result = load.run(self._port, requests, connections=CODES_AT_ONCE, seconds=seconds)
        if set(result.statuses) != {200}:
            raise NotMeasurable(f"web answered {dict(result.statuses)}, first {result.first_refusal!r}")
        return Codes(result, sampler.samples.between(began, began + result.seconds))

    def _begin(self, phase: str) -> float:
        self._phases.append((phase, time.perf_counter()))
        return self._phases[-1][1]


def _publish(merchant_id: str, count: int) -> float:
    """In a thread, which closes its connection to the database."""
    try:
        return publishing.publish(count, merchant_id)
    finally:
        connections.close_all()
