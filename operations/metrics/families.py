"""Builders of metrics. Each name begins with the same prefix; all labels have few values."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from django.db.models import QuerySet
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

PREFIX = "thaiqr_"
# Counting more costs time and changes nothing that an operator would do.
MAX_COUNTED = 100_000
Labels = tuple[str, ...]


def gauge(name: str, help_text: str, value: float) -> Metric:
    return GaugeMetricFamily(PREFIX + name, help_text, value)


def gauges(name: str, help_text: str, label: str, values: Mapping[str, float]) -> Metric:
    """A value for each value of one label."""
    family = GaugeMetricFamily(PREFIX + name, help_text, labels=[label])
    for key, value in values.items():
        family.add_metric([key], value)
    return family


def labelled_gauges(name: str, help_text: str, labels: Labels, values: Mapping[Labels, float]) -> Metric:
    """A value for each combination of several labels."""
    family = GaugeMetricFamily(PREFIX + name, help_text, labels=labels)
    for key, value in values.items():
        family.add_metric(key, value)
    return family


def counter(name: str, help_text: str, value: float) -> Metric:
    """`name` without `_total`, which the format adds."""
    return CounterMetricFamily(PREFIX + name, help_text, value)


def counters(name: str, help_text: str, labels: Labels, values: Mapping[Labels, float]) -> Metric:
    family = CounterMetricFamily(PREFIX + name, help_text, labels=labels)
    for key in sorted(values):
        family.add_metric(key, values[key])
    return family


class Histograms:
    """A histogram for each combination of labels, from counts by bucket. `bounds` has no `+Inf`."""

    def __init__(self, name: str, help_text: str, labels: Labels, bounds: Iterable[float]) -> None:
        self._family = HistogramMetricFamily(PREFIX + name, help_text, labels=labels)
        self._bounds = [*map(str, bounds), "+Inf"]
        self._counts: dict[Labels, list[int]] = defaultdict(lambda: [0] * len(self._bounds))
        self._sums: dict[Labels, float] = defaultdict(float)

    def add(self, labels: Labels, bucket: int, count: int, total: float) -> None:
        """Add `count` values in the bucket of this number, with their sum."""
        self._counts[labels][bucket] += count
        self._sums[labels] += total

    def family(self) -> Metric:
        for labels in sorted(self._counts):
            below, buckets = 0, []
            for bound, count in zip(self._bounds, self._counts[labels], strict=True):
                below += count
                buckets.append((bound, float(below)))
            self._family.add_metric(labels, buckets, self._sums[labels])
        return self._family


def count(found: "QuerySet[Any]", limit: int = MAX_COUNTED) -> int:
    """The number of rows, up to `limit`."""
    return found.order_by()[:limit].count()
