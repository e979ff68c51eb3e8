"""Wrong settings refuse to start, with a hint."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pytest_django import Settings

from config import checks, env

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("name", "value", "hint"),
    [
        ("SECRET_KEY", "short", "50 random characters"),
        ("SECRET_KEY_FALLBACKS", ["short"], "Former values"),
        ("IDEMPOTENCY_KEYS", [], "50 random characters"),
        ("IDEMPOTENCY_KEYS", ["x" * 50, "short"], "50 random characters"),
        ("FIELD_ENCRYPTION_KEYS", ["not-a-key"], "Fernet"),
        ("FIELD_ENCRYPTION_KEYS", [], "Fernet"),
        ("REDIS_URL", "http://x", "redis://"),
        ("BASE_URL", "pay.example.com", "https://"),
        ("REDIS_URL", "redis://x:notaport", "redis://"),
        ("BASE_URL", "http://:", "https://"),
        ("RATE_LIMIT", -1, "0 turns it off"),
        ("RATE_LIMIT_BURST", 0, "At least 1"),
        ("IDEMPOTENCY_TTL_HOURS", 1e9, "a year"),
        ("IDEMPOTENCY_TTL_HOURS", 0.0, "24"),
        ("WEBHOOK_PROBE", "maybe", "off, reachable, 2xx"),
        ("WEBHOOK_TIMEOUT_SECONDS", 0.0, "15"),
        ("SPEEDUP", 0.0, "1 by default"),
        ("WEBHOOK_ATTEMPT_RETENTION_DAYS", 0, "at least 1"),
        ("WEBHOOK_ATTEMPT_RETENTION_DAYS", 10**9, "ten years"),
        ("SANDBOX_BANK_SECRET", "short", "24"),
    ],
)
def test_invalid_setting_is_reported_with_hint(settings: Settings, name: str, value: Any, hint: str) -> None:
    assert checks.required_settings(None) + checks.bounded_settings(None) == []
    setattr(settings, name, value)
    found = checks.required_settings(None) + checks.bounded_settings(None)
    assert [hint in str(error.hint) for error in found] == [True]


@pytest.mark.parametrize(("calls", "is_refused"), [(0, True), (1, False), (64, False), (65, True)])
def test_card_concurrency_setting_is_bounded(settings: Settings, calls: int, is_refused: bool) -> None:
    settings.CARD_CONCURRENCY = calls
    assert [error.id for error in checks.acquirer_settings(None)] == (["qr.E041"] if is_refused else [])


@pytest.mark.parametrize(
    ("name", "value", "hint"),
    [
        ("LATE_TOLERANCE_SECONDS", -1.0, "an hour"),
        ("LATE_TOLERANCE_SECONDS", float("nan"), "an hour"),
        ("CLOCK_WARNING_SECONDS", 0.0, "2 by default"),
    ],
)
def test_clock_setting_out_of_range_is_refused_with_a_hint(
    settings: Settings, name: str, value: float, hint: str
) -> None:
    assert checks.clock_settings(None) == []
    setattr(settings, name, value)
    assert [hint in str(error.hint) for error in checks.clock_settings(None)] == [True]


@pytest.mark.parametrize(("hops", "is_refused"), [(-1, True), (0, False), (10, False), (11, True)])
def test_proxy_hops_out_of_range_is_refused(settings: Settings, hops: int, is_refused: bool) -> None:
    settings.PROXY_HOPS = hops
    assert [error.id for error in checks.proxy_settings(None)] == (["qr.E022"] if is_refused else [])


@pytest.mark.parametrize(("limit", "is_refused"), [(-1, True), (0, True), (1, False)])
def test_webhooks_per_merchant_below_one_is_refused(settings: Settings, limit: int, is_refused: bool) -> None:
    settings.WEBHOOKS_PER_MERCHANT = limit
    assert [error.id for error in checks.webhook_settings(None)] == (["qr.E060"] if is_refused else [])


@pytest.mark.django_db
def test_non_durable_database_is_refused() -> None:
    """The servers of the tests are fast and forgetful: exactly what must not run a shop."""
    (error,) = checks.durable_database(None, databases=["default"])
    assert "synchronous_commit=off" in error.msg


@pytest.mark.slow
@pytest.mark.parametrize(
    "command", [["-c", "import config.wsgi"], ["-m", "celery", "-A", "config", "worker"]]
)
def test_servers_and_workers_refuse_to_start_with_invalid_settings(command: list[str]) -> None:
    environment = os.environ | {"SECRET_KEY": "", "RATE_LIMIT": "many", "WEBHOOK_ALLOWED_NETWORKS": "home"}
    done = subprocess.run(
        [sys.executable, *command],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode != 0
    assert "50 random characters" in done.stderr
    assert "RATE_LIMIT cannot be read" in done.stderr
    assert "WEBHOOK_ALLOWED_NETWORKS cannot be read" in done.stderr


@pytest.mark.parametrize("url", ["foo", "mysql://a:b@c/d", "postgresql://host"])
def test_database_url_without_postgresql_is_refused(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", url)
    with pytest.raises(ValueError, match="DATABASE_URL"):
        env.database_url("DATABASE_URL", {})


def test_options_of_the_database_url_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://u:p@db/qr?sslmode=verify-full")
    assert env.database_url("DATABASE_URL", {})["OPTIONS"] == {"sslmode": "verify-full"}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("APPROVAL_ITEM_LIMIT", -1),
        ("APPROVAL_ITEM_LIMIT", 200_000_000),
        ("APPROVAL_DAILY_LIMIT", -1),
        ("PAYOUT_ACCOUNT_WAITING_HOURS", -1),
        ("PAYOUT_ACCOUNT_WAITING_HOURS", 721),
    ],
)
def test_approval_limit_out_of_range_refuses_to_start(settings: Settings, name: str, value: int) -> None:
    assert checks.approval_settings(None) == []
    setattr(settings, name, value)
    assert [name in str(error.msg) for error in checks.approval_settings(None)] == [True]


def test_former_approval_setting_refuses_to_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WITHDRAWAL_APPROVAL_ABOVE", "100000")
    (error,) = checks.approval_settings(None)
    assert "APPROVAL_ITEM_LIMIT" in str(error.hint)


@pytest.mark.parametrize(
    ("name", "value", "found"),
    [
        ("REFUSED_KEYS_PER_MINUTE", -1, ["qr.E050"]),
        ("REFUSED_KEYS_PER_MINUTE", 0, []),
        ("MONITORING_TOKEN", "short", ["qr.E051"]),
        ("MONITORING_TOKEN", "x" * 24, []),
    ],
)
def test_settings_for_unauthenticated_requests_are_checked(
    settings: Settings, name: str, value: object, found: list[str]
) -> None:
    setattr(settings, name, value)
    assert [error.id for error in checks.unauthenticated_settings(None)] == found
