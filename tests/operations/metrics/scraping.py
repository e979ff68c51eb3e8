"""Read `/metrics` as Prometheus does."""

from django.test import Client
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from core.observing import measurements
from operations.metrics import process_reports
from operations.metrics.families import PREFIX


def families() -> dict[str, Metric]:
    response = Client().get("/metrics")
    assert response.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    found = text_string_to_metric_families(response.content.decode())
    return {family.name.removeprefix(PREFIX): family for family in found}


def store_measurements() -> None:
    process_reports.add(measurements.OF_PROCESS.take())


def value(name: str, **labels: str) -> float:
    """Return the value of the only sample with this name, without the prefix, and these labels."""
    samples = [sample for family in families().values() for sample in family.samples]
    (found,) = [each.value for each in samples if (each.name, each.labels) == (PREFIX + name, labels)]
    return found
