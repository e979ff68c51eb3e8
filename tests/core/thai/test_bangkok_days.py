"""Days and months of filters are those of Bangkok."""

from datetime import UTC, datetime

import pytest

from core.thai import bangkok_days

NOW = datetime(2026, 3, 1, 18, 30, tzinfo=UTC)  # 01:30 on 2 March in Bangkok


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "first", "end"),
    [
        ("today", "2026-03-01 17:00", "2026-03-02 17:00"),
        ("yesterday", "2026-02-28 17:00", "2026-03-01 17:00"),
        ("week", "2026-02-23 17:00", "2026-03-02 17:00"),
        ("month", "2026-02-28 17:00", "2026-03-02 17:00"),
        ("last-month", "2026-01-31 17:00", "2026-02-28 17:00"),
        ("2026-02-28", "2026-02-27 17:00", "2026-02-28 17:00"),
        ("2026-12", "2026-11-30 17:00", "2026-12-31 17:00"),
        ("2024-02", "2024-01-31 17:00", "2024-02-29 17:00"),
    ],
)
def test_days_begin_at_midnight_in_bangkok(value: str, first: str, end: str) -> None:
    assert bangkok_days.between(value, NOW) == (utc(first), utc(end))


@pytest.mark.parametrize(
    "value", ["", "x", "2026", "2026-13", "2026-02-30", "2569-03-01", "2569-03", "0000-01", "2026-1"]
)
def test_other_values_are_no_days(value: str) -> None:
    assert bangkok_days.between(value, NOW) is None


@pytest.mark.parametrize(
    ("query", "first", "end"),
    [
        ({"date": "2026-02-28"}, "2026-02-27 17:00", "2026-02-28 17:00"),
        ({"date_from": "2026-02-27", "date_to": "2026-02-28"}, "2026-02-26 17:00", "2026-02-28 17:00"),
        ({"date_from": "2026-02-28", "date_to": "2026-02-28"}, "2026-02-27 17:00", "2026-02-28 17:00"),
        ({"date_from": "2026-02-27"}, "2026-02-26 17:00", "9999-12-31 23:59:59.999999"),
        (
            {"date_from": "2026-02-27", "date_to": "9999-12-31"},
            "2026-02-26 17:00",
            "9999-12-31 23:59:59.999999",
        ),
        ({"date_to": "2026-02-28"}, "1999-12-31 17:00", "2026-02-28 17:00"),
    ],
)
def test_span_begins_with_the_first_day_and_ends_after_the_last(
    query: dict[str, str], first: str, end: str
) -> None:
    assert bangkok_days.span(query, NOW) == (utc(first), utc(end))


@pytest.mark.parametrize(
    "query",
    [
        {"date": "x"},
        {"date_from": "2026-02-30"},
        {"date_from": "2026-03-01", "date_to": "2026-02-28"},
        {"date_from": "today", "date_to": "\0"},
    ],
)
def test_span_of_wrong_days_is_none(query: dict[str, str]) -> None:
    assert bangkok_days.span(query, NOW) is None
