"""The security log: one line an event, with actor, address and request id, and without secrets."""

import json
import logging
import time

import pytest
import time_machine

from core import request_context
from core.observing import security_log
from core.observing.logs import JsonFormatter, LogRateLimit
from core.observing.security_log import SecurityEvent
from tests.conftest import Shop, new_client
from tests.security_lines import security_lines

KEY = "tq_live_Ab3dE6gH" + "x" * 32 + "123456"


def test_security_log_line_has_actor_address_and_request_id(caplog: pytest.LogCaptureFixture) -> None:
    request_context.begin(actor="staff:somsri", request_id="req_1", address="203.0.113.7")
    security_log.record(SecurityEvent.KEY_ISSUED, subject="key:ab12cd34", merchant_id="mch_1")
    [line] = security_lines(caplog)
    assert line.pop("at") == pytest.approx(time.time(), abs=60)
    assert line == {
        "log": "security",
        "event": "key_issued",
        "actor": "staff:somsri",
        "address": "203.0.113.7",
        "request_id": "req_1",
        "subject": "key:ab12cd34",
        "merchant": "mch_1",
    }


def test_unknown_actor_is_null_in_the_security_log(caplog: pytest.LogCaptureFixture) -> None:
    request_context.begin()
    security_log.record(SecurityEvent.LOGIN_FAILED)
    [line] = security_lines(caplog)
    assert set(line) == {"at", "log", "event", "actor", "address", "request_id"}
    assert (line["actor"], line["address"], line["request_id"]) == (None, None, None)


def test_security_log_redacts_secrets_and_cuts_long_values(caplog: pytest.LogCaptureFixture) -> None:
    security_log.record(
        SecurityEvent.LOGIN_FAILED, subject=f"staff:{KEY}", changes=["x" * 5000, "1234567890"]
    )
    [line] = security_lines(caplog)
    assert line["subject"] == "staff:tq_live_Ab3dE6gH[redacted]"
    assert (len(line["changes"][0]), line["changes"][1]) == (security_log.MAX_VALUE_LENGTH, "...7890")


def test_security_log_line_is_written_without_a_second_json_envelope(
    caplog: pytest.LogCaptureFixture,
) -> None:
    security_log.record(SecurityEvent.LOGIN)
    [record] = [record for record in caplog.records if record.name == "security"]
    assert json.loads(JsonFormatter().format(record))["event"] == "login"


def test_log_level_does_not_silence_security_events() -> None:
    assert logging.getLogger("security").isEnabledFor(logging.INFO)
    assert logging.getLogger("security").level == logging.INFO


@pytest.mark.django_db
def test_refused_request_is_in_the_security_log_with_client_address(caplog: pytest.LogCaptureFixture) -> None:
    response = new_client().get("/v1/payments", REMOTE_ADDR="203.0.113.7")
    [line] = security_lines(caplog)
    assert (line["event"], line["status"], line["code"]) == ("request_refused", 401, "authentication_failed")
    assert (line["address"], line["request_id"]) == ("203.0.113.7", response.headers["X-Request-Id"])


def test_successful_or_invalid_request_is_not_in_the_security_log(
    shop: Shop, caplog: pytest.LogCaptureFixture
) -> None:
    statuses = [shop.get("/v1/payments").status_code, shop.post("/v1/qr-codes", {"amount": 1}).status_code]
    assert statuses == [200, 400]
    assert security_lines(caplog, "request_refused") == []


@pytest.mark.django_db
def test_denied_requests_of_one_client_are_rate_limited_in_the_log(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    most = security_log.REFUSALS_PER_SECOND
    monkeypatch.setattr(security_log, "_denied_log_limit", LogRateLimit(most))
    with time_machine.travel(0, tick=False) as clock:
        for _ in range(most + 5):
            new_client().get("/v1/payments", REMOTE_ADDR="203.0.113.7")
        new_client().get("/v1/payments", REMOTE_ADDR="203.0.113.8")
        assert len(security_lines(caplog)) == most + 1
        clock.shift(1)
        new_client().get("/v1/payments", REMOTE_ADDR="203.0.113.7")
    assert security_lines(caplog)[-1]["suppressed"] == 5


def test_security_log_rate_limit_remembers_a_limited_number_of_clients(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("core.observing.logs.MAX_NAMES", 10)
    limit = LogRateLimit(1)
    for number in range(100):
        assert limit.admit(str(number)) == 0
    assert len(limit._names) <= 10
