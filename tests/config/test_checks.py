"""Wrong settings refuse to start, with a hint."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.core.checks import CheckMessage
from pytest_django import Settings

from config import checks, env

ROOT = Path(__file__).resolve().parents[2]


def found_errors() -> list[CheckMessage]:
    return checks.required_settings(None) + checks.valid_settings(None)


@pytest.mark.parametrize(
    ("name", "value", "hint"),
    [
        ("SECRET_KEY", "short", "50 random characters"),
        ("SECRET_KEY_FALLBACKS", ["short"], "Former values"),
        ("IDEMPOTENCY_KEYS", [], "50 random characters"),
        ("IDEMPOTENCY_KEYS", ["x" * 50, "short"], "50 random characters"),
        ("FIELD_ENCRYPTION_KEYS", ["not-a-key"], "32 bytes"),
        ("FIELD_ENCRYPTION_KEYS", [], "32 bytes"),
        ("REDIS_URL", "http://x", "redis://"),
        ("BASE_URL", "pay.example.com", "https://"),
        ("REDIS_URL", "redis://x:notaport", "redis://"),
        ("REDIS_URL", "sentinel://127.0.0.1:26379", "sentinel://"),
        ("BASE_URL", "http://:", "https://"),
        ("RATE_LIMIT", -1, "0 turns it off"),
        ("RATE_LIMIT_BURST", 0, "At least 1"),
        ("IDEMPOTENCY_TTL_HOURS", 1e9, "a year"),
        ("IDEMPOTENCY_TTL_HOURS", 0.0, "24"),
        ("WEBHOOK_PROBE", "maybe", "off, reachable, 2xx"),
        ("WEBHOOK_TIMEOUT_SECONDS", 0.0, "15"),
        ("SPEEDUP", 0.0, "1 by default"),
        ("WEBHOOK_ATTEMPT_RETENTION_DAYS", 0, "at least 1"),
        ("REQUEST_LOG_RETENTION_DAYS", -1, "0 records no requests"),
        ("REQUEST_LOG_RETENTION_DAYS", 10**9, "ten years"),
        ("WEBHOOK_ATTEMPT_RETENTION_DAYS", 10**9, "ten years"),
        ("SANDBOX_BANK_SECRET", "short", "24"),
        ("SANDBOX_ACQUIRER_URL", "https://127.0.0.1:8100", "sandbox bank"),
        ("SANDBOX_ACQUIRER_URL", "http://127.0.0.1", "sandbox bank"),
        ("CA_BUNDLE", "/missing.pem", "in PEM"),
        ("CA_BUNDLE", __file__, "in PEM"),
        ("CARD_CONCURRENCY", 0, "1 to 64"),
        ("CARD_CONCURRENCY", 65, "1 to 64"),
        ("LATE_TOLERANCE_SECONDS", -1.0, "an hour"),
        ("LATE_TOLERANCE_SECONDS", float("nan"), "an hour"),
        ("CLOCK_WARNING_SECONDS", 0.0, "2 by default"),
        ("PROXY_HOPS", -1, "up to 10"),
        ("PROXY_HOPS", 11, "up to 10"),
        ("OIDC_ISSUER", "http://login.example.com", "https address"),
        ("SESSION_IDLE_MINUTES", 0, "1 to 480"),
        ("SESSION_IDLE_MINUTES", 481, "1 to 480"),
        ("WEBHOOKS_PER_MERCHANT", -1, "at least 1"),
        ("WEBHOOKS_PER_MERCHANT", 0, "at least 1"),
        ("APPROVAL_ITEM_LIMIT", -1, "0 turns it off"),
        ("APPROVAL_ITEM_LIMIT", 200_000_000, "0 turns it off"),
        ("APPROVAL_DAILY_LIMIT", -1, "0 turns it off"),
        ("PAYOUT_ACCOUNT_WAITING_HOURS", -1, "30 days at most"),
        ("PAYOUT_ACCOUNT_WAITING_HOURS", 721, "30 days at most"),
        ("REFUSED_KEYS_PER_MINUTE", -1, "0 turns it off"),
        ("MONITORING_TOKEN", "short", "24 random"),
    ],
)
def test_invalid_setting_is_reported_with_hint(settings: Settings, name: str, value: Any, hint: str) -> None:
    assert found_errors() == []
    setattr(settings, name, value)
    (error,) = found_errors()
    assert name in error.msg
    assert hint in str(error.hint)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("CARD_CONCURRENCY", 1),
        ("CARD_CONCURRENCY", 64),
        ("PROXY_HOPS", 0),
        ("PROXY_HOPS", 10),
        ("WEBHOOKS_PER_MERCHANT", 1),
        ("REFUSED_KEYS_PER_MINUTE", 0),
        ("MONITORING_TOKEN", "x" * 24),
    ],
)
def test_setting_at_the_limit_is_accepted(settings: Settings, name: str, value: Any) -> None:
    setattr(settings, name, value)
    assert found_errors() == []


@pytest.mark.parametrize(
    ("name", "value"),
    [("BASE_URL", "http://pay.example.com"), ("DEBUG", True), ("ALLOWED_HOSTS", ["pay.example.com", "*"])],
)
def test_setting_for_this_machine_only_is_refused_in_production(
    settings: Settings, name: str, value: Any
) -> None:
    assert checks.public_service(None) == []
    setattr(settings, name, value)
    (error,) = checks.public_service(None)
    assert name in error.msg
    if name != "BASE_URL":
        settings.BASE_URL = "http://127.0.0.1:8000"
        assert checks.public_service(None) == []


@pytest.mark.django_db
def test_non_durable_database_is_refused() -> None:
    """The database of the tests runs with synchronous_commit=off."""
    (error,) = checks.durable_database(None, databases=["default"])
    assert "synchronous_commit=off" in error.msg


@pytest.mark.slow
@pytest.mark.parametrize(
    "command", [["-c", "import config.application"], ["-m", "celery", "-A", "config", "worker"]]
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


def test_database_url_with_several_hosts_looks_for_the_primary(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://u:p@db1:5432,db2:5433/qr?sslmode=verify-full")
    found = env.database_url("DATABASE_URL", {})
    assert (found["HOST"], found["PORT"]) == ("db1,db2", "5432,5433")
    assert found["OPTIONS"] == {"sslmode": "verify-full", "target_session_attrs": "read-write"}


def backend_errors(
    settings: Settings, *, host: str = "", sslmode: str = "", redis: str = "redis://127.0.0.1/0"
) -> list[str]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(settings.DATABASES["default"], "HOST", host)
        patch.setitem(settings.DATABASES["default"], "OPTIONS", {"sslmode": sslmode} if sslmode else {})
        settings.REDIS_URL = redis
        return [str(error.id) for error in checks.encrypted_backends(None)]


@pytest.mark.parametrize(
    "host", ["", "/run/postgresql", "localhost", "127.0.0.1", "127.8.0.1", "::1", "127.0.0.1,localhost"]
)
def test_local_database_needs_no_tls(settings: Settings, host: str) -> None:
    assert backend_errors(settings, host=host) == []


@pytest.mark.parametrize(
    "host", ["db", "10.0.0.5", "localhost.example.com", "::ffff:10.0.0.5", "127.0.0.1,10.0.0.5"]
)
@pytest.mark.parametrize("sslmode", ["", "disable", "allow", "prefer"])
def test_remote_database_without_tls_is_refused(settings: Settings, host: str, sslmode: str) -> None:
    assert backend_errors(settings, host=host, sslmode=sslmode) == ["qr.E071"]
    settings.ALLOW_PLAINTEXT_BACKENDS = True
    assert backend_errors(settings, host=host, sslmode=sslmode) == []


@pytest.mark.parametrize("name", ["host", "hostaddr"])
def test_remote_host_in_database_url_query_needs_tls(settings: Settings, name: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(settings.DATABASES["default"], "HOST", "127.0.0.1")
        patch.setitem(settings.DATABASES["default"], "OPTIONS", {name: "10.0.0.5"})
        assert [str(error.id) for error in checks.encrypted_backends(None)] == ["qr.E071"]


@pytest.mark.parametrize("sslmode", ["require", "verify-ca", "verify-full"])
def test_remote_database_with_tls_is_accepted(settings: Settings, sslmode: str) -> None:
    assert backend_errors(settings, host="db.example.com", sslmode=sslmode) == []


@pytest.mark.parametrize(
    ("url", "is_refused"),
    [
        ("redis://:p@redis:6379/0", True),
        ("redis://10.0.0.5/0", True),
        ("rediss://:p@redis:6379/0?ssl_cert_reqs=required", False),
        ("rediss://:p@redis:6379/0?ssl_cert_reqs=none", True),
        ("redis://localhost/0", False),
        ("redis://[::1]:6379/0", False),
        ("unix:///run/redis.sock", False),
        ("sentinel://:p@127.0.0.1,localhost/qr", False),
        ("sentinel://:p@127.0.0.1,10.0.0.5/qr", True),
        ("sentinels://:p@10.0.0.4,10.0.0.5/qr", False),
        ("sentinels://:p@10.0.0.5/qr?ssl_cert_reqs=none", True),
    ],
)
def test_remote_redis_needs_tls(settings: Settings, url: str, is_refused: bool) -> None:
    assert backend_errors(settings, redis=url) == (["qr.E072"] if is_refused else [])
