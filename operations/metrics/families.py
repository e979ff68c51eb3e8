"""Builders of metrics. Each name begins with the same prefix; all labels have few values."""

import tomllib
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from django.db.models import QuerySet
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from core.console import admin_lists

PREFIX = "thaiqr_"
# Counting more costs time and changes nothing that an operator would do.
MAX_COUNTED = 100_000
Labels = tuple[str, ...]
HELP = {
    name: str(text).format(few=admin_lists.MAX_COUNTED, many=MAX_COUNTED)
    for name, text in tomllib.loads(Path(__file__).with_name("help.toml").read_text()).items()
}


def gauge(name: str, value: float) -> Metric:
    return GaugeMetricFamily(PREFIX + name, HELP[name], value)


def gauges(name: str, label: str | Labels, values: Mapping[Any, float]) -> Metric:
    """A value for each value of one label, or for each combination of several labels."""
    family = GaugeMetricFamily(PREFIX + name, HELP[name], labels=[label] if isinstance(label, str) else label)
    for key, value in values.items():
        family.add_metric([key] if isinstance(key, str) else key, value)
    return family


def counters(name: str, labels: Labels, values: Mapping[Labels, float]) -> Metric:
    """`name` without `_total`, which the format adds."""
    family = CounterMetricFamily(PREFIX + name, HELP[name], labels=labels)
    for key in sorted(values):
        family.add_metric(key, values[key])
    return family


def count(found: "QuerySet[Any]", limit: int = MAX_COUNTED) -> int:
    """The number of rows, up to `limit`."""
    return found.order_by()[:limit].count()


def few(found: "QuerySet[Any]") -> int:
    """The number of rows, up to that of a page of the console."""
    return count(found, admin_lists.MAX_COUNTED)


def age(now: datetime, at: datetime | None) -> float:
    """Seconds since then; 0 for nothing."""
    return 0.0 if at is None else max((now - at).total_seconds(), 0.0)
