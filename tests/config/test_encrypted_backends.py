"""PostgreSQL and Redis on another machine are reached by TLS, unless that is switched off explicitly."""

import pytest
from pytest_django import Settings

from config import checks


def refusals(
    settings: Settings, *, host: str = "", sslmode: str = "", redis: str = "redis://127.0.0.1/0"
) -> list[str]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(settings.DATABASES["default"], "HOST", host)
        patch.setitem(settings.DATABASES["default"], "OPTIONS", {"sslmode": sslmode} if sslmode else {})
        settings.REDIS_URL = redis
        return [str(error.id) for error in checks.encrypted_backends(None)]


@pytest.mark.parametrize("host", ["", "/run/postgresql", "localhost", "127.0.0.1", "127.8.0.1", "::1"])
def test_local_database_needs_no_tls(settings: Settings, host: str) -> None:
    assert refusals(settings, host=host) == []


@pytest.mark.parametrize("host", ["db", "10.0.0.5", "localhost.example.com", "::ffff:10.0.0.5"])
@pytest.mark.parametrize("sslmode", ["", "disable", "allow", "prefer"])
def test_remote_database_without_tls_is_refused(settings: Settings, host: str, sslmode: str) -> None:
    assert refusals(settings, host=host, sslmode=sslmode) == ["qr.E071"]
    settings.ALLOW_PLAINTEXT_BACKENDS = True
    assert refusals(settings, host=host, sslmode=sslmode) == []


@pytest.mark.parametrize("name", ["host", "hostaddr"])
def test_remote_host_in_database_url_query_needs_tls(settings: Settings, name: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(settings.DATABASES["default"], "HOST", "127.0.0.1")
        patch.setitem(settings.DATABASES["default"], "OPTIONS", {name: "10.0.0.5"})
        assert [str(error.id) for error in checks.encrypted_backends(None)] == ["qr.E071"]


@pytest.mark.parametrize("sslmode", ["require", "verify-ca", "verify-full"])
def test_remote_database_with_tls_is_accepted(settings: Settings, sslmode: str) -> None:
    assert refusals(settings, host="db.example.com", sslmode=sslmode) == []


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
    ],
)
def test_remote_redis_needs_tls(settings: Settings, url: str, is_refused: bool) -> None:
    assert refusals(settings, redis=url) == (["qr.E072"] if is_refused else [])
