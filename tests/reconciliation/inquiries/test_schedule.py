"""The times of inquiries about an unpaid code."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from reconciliation.inquiries import schedule
from tests.factories import PaymentFactory

NOON = datetime(2026, 11, 21, 5, 0, tzinfo=UTC)  # in Bangkok
MIDNIGHT = datetime(2026, 11, 21, 17, 0, tzinfo=UTC)  # in Bangkok, the end of that day
MINUTE = timedelta(minutes=1)


def seconds(plan: list[datetime]) -> list[float]:
    return [(instant - NOON).total_seconds() for instant in plan]


@pytest.mark.parametrize(
    ("lifetime", "early"),
    [
        (timedelta(minutes=15), [5, 15, 30, 60, 895]),
        (timedelta(minutes=1), [5, 15, 30, 55]),
        (timedelta(seconds=21), [5, 15, 16]),
        (timedelta(seconds=5), []),
        (timedelta(seconds=2), []),
    ],
)
def test_inquiry_schedule_covers_first_minute_and_expiry(lifetime: timedelta, early: list[float]) -> None:
    expires = lifetime.total_seconds()
    late = [expires + 1, expires + 60, expires + 300, expires + 3600]
    end_of_day = (MIDNIGHT + 15 * MINUTE - NOON).total_seconds()
    assert seconds(schedule.plan_times(NOON, NOON + lifetime, 0)) == [*early, *late, end_of_day]


def test_end_of_day_inquiry_uses_bangkok_time() -> None:
    before_midnight = schedule.plan_times(NOON, MIDNIGHT - MINUTE, 0)
    assert before_midnight[-2:] == [MIDNIGHT + 15 * MINUTE, MIDNIGHT + 59 * MINUTE]
    over_midnight = schedule.plan_times(NOON, MIDNIGHT, 0)
    assert over_midnight[-1] == MIDNIGHT + timedelta(days=1) + 15 * MINUTE


@pytest.mark.slow
def test_end_of_day_inquiries_are_spread_over_two_hours() -> None:
    codes = [PaymentFactory.build(merchant=None, created_at=NOON) for _ in range(1200)]
    waits = [schedule.inquiry_times(code)[-1] - (MIDNIGHT + 15 * MINUTE) for code in codes]
    crowd = Counter(wait // (10 * MINUTE) for wait in waits)
    assert sorted(crowd) == list(range(12))
    assert max(crowd.values()) < 160, "a hundred in ten minutes would be even"


def test_inquiry_schedule_is_deterministic() -> None:
    code = PaymentFactory.build(id="pay_0", merchant=None, created_at=NOON)
    last = schedule.inquiry_times(code)[-1]
    assert MIDNIGHT + 133 * MINUTE < last < MIDNIGHT + 134 * MINUTE


def test_missed_inquiry_times_become_one_inquiry() -> None:
    plan = schedule.plan_times(NOON, NOON + 15 * MINUTE, 0)
    assert schedule.next_after(NOON + timedelta(minutes=17), plan) == NOON + 20 * MINUTE
    assert schedule.next_after(MIDNIGHT + 15 * MINUTE, plan) is None


@pytest.mark.parametrize(
    ("silent_for", "wait"),
    [
        (timedelta(0), timedelta(seconds=5)),
        (timedelta(seconds=10), timedelta(seconds=5)),
        (timedelta(seconds=40), timedelta(seconds=20)),
        (timedelta(hours=1), timedelta(minutes=10)),
        (timedelta(hours=23), timedelta(minutes=10)),
        (timedelta(hours=24), None),
    ],
)
def test_inquiry_retries_slow_down_for_a_day(silent_for: timedelta, wait: timedelta | None) -> None:
    at = MIDNIGHT + 15 * MINUTE + silent_for
    again = schedule.retry_at(at, schedule.plan_times(NOON, NOON + 15 * MINUTE, 0))
    assert again == (None if wait is None else at + wait)


def test_inquiry_retry_is_never_later_than_the_next_scheduled_time() -> None:
    plan = schedule.plan_times(NOON, NOON + 15 * MINUTE, 0)
    assert schedule.retry_at(NOON + timedelta(seconds=13), plan) == NOON + timedelta(seconds=15)


def test_speedup_setting_shortens_the_inquiry_schedule(settings: Any) -> None:
    settings.SPEEDUP = 10
    plan = schedule.plan_times(NOON, NOON + 15 * MINUTE, 0)
    assert seconds(plan)[:6] == [0.5, 1.5, 3, 6, 899.5, 900.1]
