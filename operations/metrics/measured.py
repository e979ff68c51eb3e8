"""Metrics that all processes measured: HTTP requests, calls to banks, tasks. See `core.measurements`."""

import json
from collections import Counter
from collections.abc import Iterator

from prometheus_client.core import Metric

from core.measurements import BANK_CALL, BOUNDS, HTTP_REQUEST, TASK
from operations.metrics.families import Histograms, Labels, counters
from operations.models import Measurement

Row = tuple[Labels, int, int, float]


def read() -> Iterator[Metric]:
    found: dict[str, list[Row]] = {HTTP_REQUEST: [], BANK_CALL: [], TASK: []}
    columns = ("name", "labels", "bucket", "count", "seconds")
    for name, labels, bucket, count, seconds in Measurement.objects.values_list(*columns):
        found.setdefault(name, []).append((tuple(json.loads(labels)), bucket, count, seconds))
    yield from _http_requests(found[HTTP_REQUEST])
    yield from _by_result("bank_call", "calls to banks and acquirers", "bank", found[BANK_CALL])
    yield from _by_result("task", "tasks of workers", "task", found[TASK])


def _http_requests(measured: list[Row]) -> Iterator[Metric]:
    counted: Counter[Labels] = Counter()
    durations = Histograms("http_request_seconds", "Duration of requests.", ("method", "route"), BOUNDS)
    for labels, bucket, count, seconds in measured:
        counted[labels] += count
        durations.add(labels[:2], bucket, count, seconds)
    yield counters("http_requests", "Requests, by status.", ("method", "route", "status"), counted)
    yield durations.family()


def _by_result(name: str, what: str, label: str, measured: list[Row]) -> Iterator[Metric]:
    """What is labelled with a party and a result: a counter with both, and durations by party."""
    counted: Counter[Labels] = Counter()
    durations = Histograms(f"{name}_seconds", f"Duration of {what}.", (label,), BOUNDS)
    for labels, bucket, count, seconds in measured:
        counted[labels] += count
        durations.add(labels[:1], bucket, count, seconds)
    yield counters(f"{name}s", f"{what.capitalize()}, by result.", (label, "result"), counted)
    yield durations.family()
