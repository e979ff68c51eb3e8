"""Wrong settings refuse to start, with a hint."""

import runpy
from pathlib import Path
from typing import Any

import pytest
from django.core.checks import CheckMessage
from pytest_django import Settings

from config import checks, env

ROOT = Path(__file__).resolve().parents[2]


def found_errors() -> list[CheckMessage]:
    return checks.valid_settings(None)


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
        ("CLOSE_SIGNING_KEY", "short", "44 characters"),
        ("CLOSE_PUBLIC_KEYS", ["short"], "daily_close --public-key"),
        ("CA_BUNDLE", "/missing.pem", "in PEM"),
        ("CA_BUNDLE", __file__, "in PEM"),
    ],
)
def test_invalid_setting_is_reported_with_hint(settings: Settings, name: str, value: Any, hint: str) -> None:
    assert found_errors() == []
    setattr(settings, name, value)
    (error,) = found_errors()
    assert name in error.msg
    assert hint in str(error.hint)


def read(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> tuple[Any, dict[str, str]]:
    """What the settings make of a variable, and what is wrong with it."""
    problems: dict[str, str] = {}
    for module in (env, checks):
        monkeypatch.setattr(module, "invalid_variables", problems)
    monkeypatch.setattr(env.env, "ENVIRON", {name: value})
    return runpy.run_path(str(ROOT / "config" / "settings.py"))[name], problems


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("RATE_LIMIT", "-1", "at least 0"),
        ("RATE_LIMIT", "many", "cannot be read"),
        ("RATE_LIMIT_BURST", "0", "at least 1"),
        ("IDEMPOTENCY_TTL_HOURS", "8785", "0.001 to 8,784"),
        ("IDEMPOTENCY_TTL_HOURS", "0", "0.001 to 8,784"),
        ("WEBHOOK_PROBE", "maybe", "off, reachable or 2xx"),
        ("WEBHOOK_TIMEOUT_SECONDS", "0", "at least 0.001"),
        ("SPEEDUP", "0", "at least 0.001"),
        ("WEBHOOK_ATTEMPT_RETENTION_DAYS", "0", "1 to 3,653"),
        ("WEBHOOK_DELIVERY_RETENTION_DAYS", "29", "0, or 30 to 3,653"),
        ("SLIP_CHECK_RETENTION_DAYS", "29", "0, or 30 to 3,653"),
        ("REQUEST_LOG_RETENTION_DAYS", "-1", "0 to 3,653"),
        ("REQUEST_LOG_RETENTION_DAYS", "1000000000", "0 to 3,653"),
        ("SANDBOX_BANK_SECRET", "short", "at least 24"),
        ("SANDBOX_ACQUIRER_URL", "https://127.0.0.1:8100", "malformed"),
        ("SANDBOX_ACQUIRER_URL", "http://127.0.0.1", "malformed"),
        ("OMISE_API_URL", "http://api.omise.co", "malformed"),
        ("CARD_CONCURRENCY", "0", "1 to 64"),
        ("CARD_CONCURRENCY", "65", "1 to 64"),
        ("LATE_TOLERANCE_SECONDS", "-1", "0 to 3,600"),
        ("LATE_TOLERANCE_SECONDS", "nan", "cannot be read"),
        ("CLOCK_WARNING_SECONDS", "0", "at least 0.001"),
        ("PROXY_HOPS", "-1", "0 to 10"),
        ("PROXY_HOPS", "11", "0 to 10"),
        ("OIDC_ISSUER", "http://login.example.com", "malformed"),
        ("SESSION_IDLE_MINUTES", "481", "1 to 480"),
        ("WEBHOOKS_PER_MERCHANT", "0", "at least 1"),
        ("APPROVAL_ITEM_LIMIT", "-1", "0 to 199,999,999"),
        ("APPROVAL_ITEM_LIMIT", "200000000", "0 to 199,999,999"),
        ("APPROVAL_DAILY_LIMIT", "-1", "at least 0"),
        ("PAYOUT_ACCOUNT_WAITING_HOURS", "721", "0 to 720"),
        ("REFUSED_KEYS_PER_MINUTE", "-1", "at least 0"),
        ("MONITORING_TOKEN", "short", "at least 24"),
        ("LOG_LEVEL", "LOUD", "unknown"),
        ("LOG_STREAM", "stdin", "stdout or stderr"),
        ("DATABASE_PREPARE", "2", "0, 1 or pooler"),
    ],
)
def test_variable_out_of_bounds_is_reported_and_not_used(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, problem: str
) -> None:
    found, problems = read(monkeypatch, name, value)
    assert str(found) != value
    assert list(problems) == [name]
    assert problem in problems[name]
    (error,) = [each for each in checks.valid_settings(None) if each.id == "qr.E014"]
    assert name in error.msg


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("CARD_CONCURRENCY", "1"),
        ("CARD_CONCURRENCY", "64"),
        ("PROXY_HOPS", "0"),
        ("PROXY_HOPS", "10"),
        ("WEBHOOKS_PER_MERCHANT", "1"),
        ("REFUSED_KEYS_PER_MINUTE", "0"),
        ("PERSONAL_DATA_RETENTION_DAYS", "0"),
        ("PERSONAL_DATA_RETENTION_DAYS", "30"),
        ("MONITORING_TOKEN", "x" * 24),
        ("WEBHOOK_PROBE", "2xx"),
        ("OIDC_ISSUER", "https://login.example.com/realms/shop"),
        ("SANDBOX_ACQUIRER_URL", "http://[::1]:8100"),
    ],
)
def test_variable_at_the_limit_is_accepted(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    found, problems = read(monkeypatch, name, value)
    assert (str(found), problems) == (value, {})


@pytest.mark.parametrize(
    ("name", "value"),
    [("BASE_URL", "http://pay.example.com"), ("ALLOWED_HOSTS", ["pay.example.com", "*"])],
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
    (error,) = checks.usable_database(None, databases=["default"])
    assert "synchronous_commit=off" in error.msg


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
