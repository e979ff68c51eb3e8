"""Traces and error reports that are off."""

import sys
import time

import pytest

from core import error_reports, telemetry


@pytest.mark.alone
@pytest.mark.slow
def test_traces_that_are_off_take_less_than_a_microsecond() -> None:
    def measure() -> float:
        began = time.perf_counter()
        for _ in range(10_000):
            assert telemetry.record_event("payment.pending", "evt_1", "pay_1") is None
        return (time.perf_counter() - began) / 10_000

    telemetry.start("web-0")
    assert not telemetry.is_on()
    assert min(measure() for _ in range(5)) < 1e-6


def test_optional_packages_are_not_imported_if_they_are_off(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("opentelemetry.sdk", "opentelemetry.sdk.trace", "sentry_sdk"):
        monkeypatch.setitem(sys.modules, name, None)  # an import would raise
    telemetry.start("web-0")
    error_reports.start("web-0")
    assert not telemetry.is_on()
