"""Traces and error reports that are off."""

import sys

import pytest

from core.observing import error_reports, telemetry


def test_optional_packages_are_not_imported_if_they_are_off(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("opentelemetry.sdk", "opentelemetry.sdk.trace", "sentry_sdk"):
        monkeypatch.setitem(sys.modules, name, None)  # an import would raise
    telemetry.start("web-0")
    error_reports.start("web-0")
    assert not telemetry.is_on()
