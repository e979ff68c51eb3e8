"""Requests of strangers: a wrong Host, invalid forms, monitoring pages without the token."""

import json
import logging
from typing import Any

import pytest
import time_machine
from pytest_django import Settings

from core.http import api
from core.observing.logs import JsonFormatter, LogRateLimit
from tests.conftest import new_client
from tests.error_messages import check_error

TOKEN = "a-token-for-prometheus-42"


@pytest.fixture(autouse=True)
def fresh_line_limit(monkeypatch: pytest.MonkeyPatch, settings: Settings) -> None:
    settings.ALLOWED_HOSTS = ["pay.shop.example"]
    monkeypatch.setattr(api, "_bad_request_log_limit", LogRateLimit(1))


def lines_of(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    """The log lines, without access and security lines."""
    records = [record for record in caplog.records if record.name not in ("access", "security")]
    return [json.loads(JsonFormatter().format(record)) for record in records]


@pytest.mark.django_db
@pytest.mark.parametrize("host", ["evil.example", "pay.shop.example@evil", "a" * 5000, "pay.shop.example:x"])
@pytest.mark.slow
def test_unknown_host_is_400_without_a_traceback(caplog: pytest.LogCaptureFixture, host: str) -> None:
    with time_machine.travel(0, tick=False):
        for _ in range(25):
            response = new_client().post("/admin/login/", {"login": "x"}, HTTP_HOST=host)
    assert response.status_code == 400
    check_error(response.json(), "invalid_host")
    [line] = lines_of(caplog)
    assert line["level"] == "WARNING"
    assert "error" not in line
    assert len(line["message"]) < 300


@pytest.mark.django_db
def test_suppressed_log_lines_are_counted(caplog: pytest.LogCaptureFixture) -> None:
    with time_machine.travel(0, tick=False) as clock:
        for _ in range(5):
            new_client().post("/admin/login/", HTTP_HOST="evil.example")
        clock.shift(1)
        new_client().post("/admin/login/", HTTP_HOST="evil.example")
    assert "(4 more)" in lines_of(caplog)[-1]["message"]


@pytest.mark.django_db
def test_form_with_too_many_fields_is_400_without_a_traceback(caplog: pytest.LogCaptureFixture) -> None:
    fields = "&".join(f"field{number}=x" for number in range(2000))
    response = new_client().post(
        "/admin/login/", fields, "application/x-www-form-urlencoded", HTTP_HOST="pay.shop.example"
    )
    assert response.status_code == 400
    assert all("error" not in line for line in lines_of(caplog))


@pytest.mark.django_db
@pytest.mark.parametrize("path", ["/metrics", "/readyz"])
@pytest.mark.parametrize(
    ("header", "is_admitted"),
    [
        (None, False),
        (f"Bearer {TOKEN}", True),
        (f"Bearer {TOKEN}x", False),
        (TOKEN, False),
        ("Bearer ", False),
        ("Bearer ä", False),
    ],
)
def test_monitoring_pages_need_the_token_if_one_is_set(
    settings: Settings, path: str, header: str | None, is_admitted: bool
) -> None:
    settings.MONITORING_TOKEN = TOKEN
    response = new_client().get(path, headers={} if header is None else {"Authorization": header})
    assert (response.status_code != 401) is is_admitted
    if not is_admitted:
        assert response.json()["error"]["code"] == "authentication_failed"
        assert response.headers["WWW-Authenticate"] == "Bearer"


@pytest.mark.django_db
@pytest.mark.slow
def test_monitoring_pages_are_open_without_a_token_and_healthz_always() -> None:
    assert new_client().get("/metrics").status_code == 200
    assert new_client().get("/readyz").status_code in (200, 503)


def test_healthz_needs_no_token(settings: Settings) -> None:
    settings.MONITORING_TOKEN = TOKEN
    assert new_client().get("/healthz").status_code == 200


def test_security_logger_of_the_framework_is_silent() -> None:
    assert not logging.getLogger("django.security.DisallowedHost").isEnabledFor(logging.ERROR)
