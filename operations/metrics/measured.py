"""Metrics that all processes measured. See `core.measurements`."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import accumulate

from prometheus_client.core import HistogramMetricFamily, Metric

from core.measurements import BANK_CALL, BOUNDS, DELIVERY, DROPPED_REQUEST, FAILED_WAKEUP, HTTP_REQUEST, TASK
from operations.metrics.families import PREFIX, Labels, counter, counters
from operations.models import Measurement
from webhooks.delivery.metrics import SUCCEEDED
from webhooks.delivery.queue import WORKER_LOST

Row = tuple[Labels, int, int, float]


def read() -> Iterator[Metric]:
    found: defaultdict[str, list[Row]] = defaultdict(list)
    columns = ("name", "labels", "bucket", "count", "seconds")
    for name, labels, bucket, count, seconds in Measurement.objects.values_list(*columns):
        found[name].append((tuple(json.loads(labels)), bucket, count, seconds))
    requests = found[HTTP_REQUEST]
    counted = _by_labels(requests)
    yield counters("http_requests", "Requests, by status.", ("method", "route", "status"), counted)
    yield _durations("http_request", "requests", ("method", "route"), requests)
    yield from _by_result("bank_call", "calls to banks and acquirers", "bank", found[BANK_CALL])
    yield from _by_result("task", "tasks of workers", "task", found[TASK])
    attempts = found[DELIVERY]
    outcomes = {(SUCCEEDED,): 0, (WORKER_LOST,): 0} | _by_labels(attempts)
    yield counters("webhook_delivery_attempts", "Attempts to deliver, by outcome.", ("outcome",), outcomes)
    # An attempt of a lost worker has no duration. Without attempts, the histogram is zero.
    answered = [each for each in attempts if each[0] != (WORKER_LOST,)] or [((), 0, 0, 0.0)]
    yield _durations("webhook_delivery_attempt", "delivery attempts", (), answered)
    for name, help_text, rows in [
        ("webhook_wakeup_failures", "Wakeups that did not reach Redis.", found[FAILED_WAKEUP]),
        ("request_log_dropped", "Requests that the request log does not have.", found[DROPPED_REQUEST]),
    ]:
        yield counter(name, help_text, _by_labels(rows)[()])


def _by_result(name: str, what: str, label: str, measured: list[Row]) -> Iterator[Metric]:
    """What is labelled with a party and a result: a counter with both, and durations by party."""
    counted = _by_labels(measured)
    yield counters(f"{name}s", f"{what.capitalize()}, by result.", (label, "result"), counted)
    yield _durations(name, what, (label,), measured)


def _by_labels(measured: list[Row]) -> Counter[Labels]:
    counted: Counter[Labels] = Counter()
    for labels, _, count, _ in measured:
        counted[labels] += count
    return counted


def _durations(name: str, what: str, labels: Labels, measured: list[Row]) -> Metric:
    """A histogram by the first labels of each number."""
    family = HistogramMetricFamily(f"{PREFIX}{name}_seconds", f"Duration of {what}.", labels=labels)
    bounds = [*map(str, BOUNDS), "+Inf"]
    counts: defaultdict[Labels, list[int]] = defaultdict(lambda: [0] * len(bounds))
    sums: defaultdict[Labels, float] = defaultdict(float)
    for values, bucket, count, seconds in measured:
        counts[values[: len(labels)]][bucket] += count
        sums[values[: len(labels)]] += seconds
    for key in sorted(counts):
        at_most = zip(bounds, map(float, accumulate(counts[key])), strict=True)
        family.add_metric(key, list(at_most), sums[key])
    return family
