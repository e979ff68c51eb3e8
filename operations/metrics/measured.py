"""Metrics that all processes measured. See `core.observing.measurements`."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import accumulate

from prometheus_client.core import HistogramMetricFamily, Metric

from core.observing.measurements import (
    BANK_CALL,
    BOUNDS,
    DELIVERY,
    DROPPED_REQUEST,
    FAILED_WAKEUP,
    HTTP_REQUEST,
    TASK,
)
from operations.metrics.families import HELP, PREFIX, Labels, counters
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
    yield counters("http_requests", ("method", "route", "status"), counted)
    yield _durations("http_request", ("method", "route"), requests)
    yield from _by_result("bank_call", "bank", found[BANK_CALL])
    yield from _by_result("task", "task", found[TASK])
    attempts = found[DELIVERY]
    outcomes = {(SUCCEEDED,): 0, (WORKER_LOST,): 0} | _by_labels(attempts)
    yield counters("webhook_delivery_attempts", ("outcome",), outcomes)
    # An attempt of a lost worker has no duration. Without attempts, the histogram is zero.
    answered = [each for each in attempts if each[0] != (WORKER_LOST,)] or [((), 0, 0, 0.0)]
    yield _durations("webhook_delivery_attempt", (), answered)
    yield counters("webhook_wakeup_failures", (), {(): _by_labels(found[FAILED_WAKEUP])[()]})
    yield counters("request_log_dropped", (), {(): _by_labels(found[DROPPED_REQUEST])[()]})


def _by_result(name: str, label: str, measured: list[Row]) -> Iterator[Metric]:
    """What is labelled with a party and a result: a counter with both, and durations by party."""
    yield counters(f"{name}s", (label, "result"), _by_labels(measured))
    yield _durations(name, (label,), measured)


def _by_labels(measured: list[Row]) -> Counter[Labels]:
    counted: Counter[Labels] = Counter()
    for labels, _, count, _ in measured:
        counted[labels] += count
    return counted


def _durations(name: str, labels: Labels, measured: list[Row]) -> Metric:
    """A histogram by the first labels of each number."""
    name += "_seconds"
    family = HistogramMetricFamily(PREFIX + name, HELP[name], labels=labels)
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
