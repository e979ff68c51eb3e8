"""Redaction of log lines."""

import json
import logging
import re
import sys

import pytest
from django.db import DatabaseError, transaction

from core.observing.logs import JsonFormatter, redact
from merchants.models import Merchant
from tests.conftest import Shop

KEY = "tq_live_Ab3dE6gH" + "x" * 32 + "123456"


@pytest.mark.parametrize(
    ("text", "written"),
    [
        (f"key {KEY}!", "key tq_live_Ab3dE6gH[redacted]!"),
        (KEY.replace("live", "test"), "tq_test_Ab3dE6gH[redacted]"),
        ("Authorization: Bearer s3cret.and/more", "Authorization: Bearer [redacted]"),
        ("secret whsec_MDEyMzQ1Njc4OQ==, next", "secret whsec_[redacted], next"),
        ("redis://:pass@h/0 postgres://u:p@ss@h/d", "redis://:[redacted]@h/0 postgres://u:[redacted]@h/d"),
        ("/claim/clt_7Gh2abc 404", "/claim/clt_[redacted] 404"),
        ("/banks/scb/notifications/bep_7Gh2abc", "/banks/scb/notifications/bep_[redacted]"),
        ("account 1234567890.", "account ...7890."),
        ("card 4111111111111111", "card ...1111"),
        (f"{KEY} {KEY}", "tq_live_Ab3dE6gH[redacted] tq_live_Ab3dE6gH[redacted]"),
    ],
)
def test_secrets_and_accounts_are_redacted(text: str, written: str) -> None:
    assert redact(text) == written


@pytest.mark.parametrize(
    "text",
    [
        "pay_0oDeh0HytHBZtVNXOdG5dj5erMi is expired",
        "150000 satang in 15 minutes",
        "2026-11-21T03:04:05.123Z",
        "req_0oDFPazyVRoGTTDIuRe7QK7m3b4",
        "https://shop.example:8443/hook",
        "",
    ],
)
def test_ids_times_and_amounts_are_not_redacted_in_logs(text: str) -> None:
    assert redact(text) == text


def line(message: str, *args: object, name: str = "api", error: bool = False) -> str:
    trouble = sys.exc_info() if error else None
    return JsonFormatter().format(logging.LogRecord(name, logging.ERROR, "", 1, message, args, trouble))


def test_log_line_is_one_json_object_without_secrets() -> None:
    try:
        raise ValueError(f"bad key {KEY}\nfor account 1234567890")
    except ValueError:
        written = line("%s failed", KEY, error=True)
    assert "\n" not in written
    assert "xxx" not in written and "1234567890" not in written
    shown = json.loads(written)
    assert (shown["log"], shown["level"], shown["message"]) == (
        "api",
        "ERROR",
        "tq_live_Ab3dE6gH[redacted] failed",
    )
    assert "Traceback" in shown["error"]


@pytest.mark.django_db
def test_refused_row_is_not_in_the_log(shop: Shop) -> None:
    merchants = Merchant.objects.filter(pk=shop.merchant.pk)
    merchants.update(name="Somchai\nJaidee")
    with transaction.atomic(), pytest.raises(DatabaseError, match=r"row contains.*Somchai") as refused:
        merchants.update(mode="none")
    told = redact(f"{refused.value}\nThe above exception was the cause")
    assert not re.search("Somchai|Jaidee", told)
    assert "DETAIL: [redacted]\nThe above exception was the cause" in told


def test_security_log_line_is_written_unchanged() -> None:
    assert line('{"status":200}', name="security") == '{"status":200}'
