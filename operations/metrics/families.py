"""Builders of metrics. Each name begins with the same prefix; all labels have few values."""

from collections.abc import Mapping
from typing import Any

from django.db.models import QuerySet
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

PREFIX = "thaiqr_"
# Counting more costs time and changes nothing that an operator would do.
MAX_COUNTED = 100_000
Labels = tuple[str, ...]


def gauge(name: str, help_text: str, value: float) -> Metric:
    return GaugeMetricFamily(PREFIX + name, help_text, value)


def gauges(name: str, help_text: str, label: str | Labels, values: Mapping[Any, float]) -> Metric:
    """A value for each value of one label, or for each combination of several labels."""
    family = GaugeMetricFamily(PREFIX + name, help_text, labels=[label] if isinstance(label, str) else label)
    for key, value in values.items():
        family.add_metric([key] if isinstance(key, str) else key, value)
    return family


def counter(name: str, help_text: str, value: float) -> Metric:
    """`name` without `_total`, which the format adds."""
    return CounterMetricFamily(PREFIX + name, help_text, value)


def counters(name: str, help_text: str, labels: Labels, values: Mapping[Labels, float]) -> Metric:
    family = CounterMetricFamily(PREFIX + name, help_text, labels=labels)
    for key in sorted(values):
        family.add_metric(key, values[key])
    return family


def count(found: "QuerySet[Any]", limit: int = MAX_COUNTED) -> int:
    """The number of rows, up to `limit`."""
    return found.order_by()[:limit].count()
