"""Ten attempts within 75 hours, with 20 % jitter, and later if the endpoint asks for it."""

from datetime import timedelta
from email.utils import format_datetime

import pytest
from pytest_django import Settings

from tests.webhooks.builders import NOW
from webhooks.delivery import retry_schedule

WAITS = {1: 5, 2: 300, 3: 1800, 4: 7200, 5: 18_000, 6: 36_000, 7: 50_400, 8: 72_000, 9: 86_400}


def wait_after(attempt: int, *, retry_after: str | None = None) -> float:
    wait = retry_schedule.retry_delay(attempt, retry_after=retry_after, now=NOW)
    assert wait is not None
    return wait


@pytest.mark.parametrize(("attempt", "seconds"), WAITS.items())
def test_retry_delays_grow_with_20_percent_jitter(attempt: int, seconds: int) -> None:
    waits = [wait_after(attempt) for _ in range(200)]
    assert 0.8 * seconds <= min(waits) < 0.9 * seconds
    assert 1.1 * seconds < max(waits) <= 1.2 * seconds


def test_tenth_delivery_attempt_is_the_last() -> None:
    assert retry_schedule.retry_delay(10, retry_after="5", now=NOW) is None


def test_webhook_speedup_divides_retry_delays(settings: Settings) -> None:
    settings.SPEEDUP = 300
    assert 0.8 <= wait_after(2) <= 1.2


@pytest.mark.parametrize(
    ("retry_after", "at_least", "at_most"),
    [
        ("450", 450, 450),
        (format_datetime(NOW + timedelta(seconds=450)), 449, 450),
        ("1", 240, 360),
        (format_datetime(NOW - timedelta(days=1)), 240, 360),
        ("100000", 480, 720),
        ("9" * 5000, 480, 720),
        ("Fri, 31 Dec 9999 23:59:59 GMT", 480, 720),
    ],
)
def test_retry_after_is_honoured_up_to_twice_the_wait(
    retry_after: str, at_least: float, at_most: float
) -> None:
    assert at_least <= wait_after(2, retry_after=retry_after) <= at_most


@pytest.mark.parametrize(
    "nonsense", ["", "soon", "-5", "1e9", "1.5", "٣", "Fri, 99 Dec 2026 00:00:00 GMT", "\x00"]
)
def test_invalid_retry_after_is_ignored(nonsense: str) -> None:
    assert retry_schedule.parse_retry_after(nonsense, NOW) == 0
