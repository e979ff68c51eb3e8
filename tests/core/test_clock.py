"""Instants are UTC to the millisecond, and one form shows them."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
import time_machine

from core import clock

BANGKOK = timezone(timedelta(hours=7))


def test_now_is_utc_to_the_millisecond() -> None:
    with time_machine.travel(datetime(2026, 11, 21, 3, 4, 5, 123_999, tzinfo=UTC), tick=False):
        assert clock.now() == datetime(2026, 11, 21, 3, 4, 5, 123_000, tzinfo=UTC)
        assert clock.now().tzinfo is UTC


@pytest.mark.parametrize(
    ("at", "shown"),
    [
        (datetime(2026, 11, 21, 3, 4, 5, 123_000, tzinfo=UTC), "2026-11-21T03:04:05.123Z"),
        (datetime(2026, 11, 21, 3, 4, 5, tzinfo=UTC), "2026-11-21T03:04:05.000Z"),
        (datetime(2026, 11, 21, 3, 4, 5, 999_999, tzinfo=UTC), "2026-11-21T03:04:05.999Z"),
        (datetime(2026, 11, 21, 3, 4, 5, tzinfo=BANGKOK), "2026-11-20T20:04:05.000Z"),
    ],
)
def test_instant_is_shown_in_utc_with_milliseconds(at: datetime, shown: str) -> None:
    assert clock.iso(at) == clock.iso_or_none(at) == shown


def test_iso_or_none_of_none_is_none() -> None:
    assert clock.iso_or_none(None) is None
