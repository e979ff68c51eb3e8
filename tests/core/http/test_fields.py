"""Strict fields: the accepted values of bodies and queries. No value is converted."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from core import clock, dates
from core.http import fields
from core.http.paging import PeriodPageQuery

NOON = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
MILLISECOND = timedelta(milliseconds=1)
# All with the Unicode property Bidi_Control.
BIDI_CONTROLS = [*"\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"]
INTEGER = fields.Integer(min_value=1, max_value=10)
TEXT = fields.Text(max_length=5)
CHOICE = fields.Choice(["THB"])
NUMBER = fields.QueryInteger(min_value=0, max_value=100)
FROM, UNTIL = fields.QueryInstant(), fields.QueryInstant(end=True)
METADATA = fields.Metadata()


def each(field: Any, *values: Any) -> list[tuple[Any, Any]]:
    """The field with each of the values."""
    return [(field, value) for value in values]


def test_message_of_a_missing_field_is_that_of_strict_fields_only() -> None:
    for field in (INTEGER, TEXT, CHOICE, NUMBER, FROM, METADATA, fields.QueryMetadata()):
        assert field.error_messages["required"] == "is required"
    assert serializers.CharField().error_messages["required"] == "This field is required."


def test_valid_field_value_is_returned_unchanged() -> None:
    for field, value in [
        *each(INTEGER, 1, 10),
        *each(TEXT, "a", " a ", "12345", "กำลัง", "😀😀😀😀😀", "سلام", "שלום", "a\u200db", "\n", "\x1b[0m"),
        (CHOICE, "THB"),
        *each(METADATA, {}, {"k": None}, {"a": {"b": [1, 2.5, "c"]}}, {"": ""}),
    ]:
        kept = field.run_validation(value)
        assert kept == value
        assert type(kept) is type(value)


def test_invalid_field_value_is_refused() -> None:
    for field, value in [
        *each(INTEGER, 0, 11, 2**63, "1", " 1 ", "", 1.5, 11.0, True, False, None, [1], {}),
        *each(TEXT, *(f"a{control}b" for control in BIDI_CONTROLS)),
        *each(TEXT, "", "123456", 1, 1.5, True, None, [], {}, b"a"),
        *each(CHOICE, "thb", "THB ", " THB", "", "USD", 764, True, None, [], {}, ["THB"]),
        *each(METADATA, None, [], "x", 1, True),
        (METADATA, {str(number): 1 for number in range(51)}),
        (METADATA, {"k": "x" * 8_192}),
        (METADATA, {"k": "ก" * 2_731}),
        *each(NUMBER, "", " ", "abc", "1.5", "1e2", "0x1", "-1", "101", "+1", " 1", "1 "),
        *each(NUMBER, "９", "١", "9" * 19, "9" * 5_000, "1_0", "NaN", "True", "1\n"),
    ]:
        with pytest.raises(ValidationError):
            field.run_validation(value)


def test_metadata_of_50_keys_and_8_kb_is_accepted() -> None:
    for most in ({str(number): 1 for number in range(50)}, {"k": "x" * (8_192 - len('{"k":""}'))}):
        assert METADATA.run_validation(most) == most


@pytest.mark.parametrize(("text", "number"), [("0", 0), ("100", 100), ("007", 7), ("-0", 0)])
def test_query_integer_is_decimal_digits(text: str, number: int) -> None:
    assert NUMBER.run_validation(text) == number


def test_query_instant_is_a_date_or_a_time_in_utc_unless_it_has_an_offset() -> None:
    for text, at in [
        ("2026-11-21", datetime(2026, 11, 21, tzinfo=UTC)),
        ("2024-02-29", datetime(2024, 2, 29, tzinfo=UTC)),
        ("0001-01-01", datetime(1, 1, 1, tzinfo=UTC)),
        ("2026-11-21T12:00:00Z", NOON),
        ("2026-11-21T12:00Z", NOON),
        ("2026-11-21T19:00:00+07:00", NOON),
        ("2026-11-21T19:00:00 07:00", NOON),
        ("2026-11-21T06:30:00-05:30", NOON),
        ("2026-11-21T12:00:00.5Z", NOON + timedelta(milliseconds=500)),
        ("2026-11-21T12:00:00.123Z", NOON + timedelta(milliseconds=123)),
        ("2026-11-21T12:00:00.123456789Z", NOON + timedelta(microseconds=123_456)),
        ("2026-11-21T19:00:00+0700", NOON),
        ("2026-11-21T19:00:00+07", NOON),
        ("2026-11-21T12:00:00", NOON),
        ("2026-11-21T12:00:00.123456", NOON + timedelta(microseconds=123_456)),
        ("2026-11-21 12:00:00", NOON),
        ("2026-11-21t12:00:00z", NOON),
        ("2400-12-31", datetime(2400, 12, 31, tzinfo=UTC)),
        ("3000-01-01", datetime(3000, 1, 1, tzinfo=UTC)),
    ]:
        assert FROM.run_validation(text) == at
        exclusive = timedelta(days=1) if ":" not in text else MILLISECOND
        assert UNTIL.run_validation(text) == clock.to_millisecond(at) + exclusive


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "nope", "now", "today", "infinity", "epoch", "1735689600", "20260101", "2026-W01-1"),
        *("2025-02-30", "2025-02-29", "2025-13-01", "2025-00-10", "0000-01-01", "-0001-01-01", "10000-01-01"),
        *("2026-1-1", "2026-11-21 ", " 2026-11-21", "2026-11-21\n", "2026-11-21\0", "２０２５-01-01"),
        *(
            "2026-11-21T12Z",
            "2026-11-21T",
            "2026-11-21T12:00:00 ",
            "2026-11-21T12:00:00+",
            "2026-11-21  12:00",
        ),
        *("2026-11-21T25:00:00Z", "2026-11-21T12:60:00Z", "2026-11-21T12:00:60Z", "2026-11-21T24:00:00Z"),
        *("2026-11-21T12:00:00+25:00", "2026-11-21T12:00:00+7", "2026-11-21T12:00:00+07:0"),
        *("2026-11-21T12:00:00.Z", "2026-11-21T12:00:00.1234567890Z", "2026-11-21T12:00:00,5Z"),
    ],
)
@pytest.mark.parametrize("field", [FROM, UNTIL], ids=["start", "end"])
def test_invalid_query_instant_is_refused(field: fields.QueryInstant, text: str) -> None:
    with pytest.raises(ValidationError):
        field.run_validation(text)


def test_year_of_the_buddhist_calendar_is_refused_by_its_name() -> None:
    for text in ("2569-11-21", "2569-02-30", "2401-01-01", "2999-12-31", "2569-11-21T10:00:00+07:00"):
        for field in (FROM, UNTIL):
            with pytest.raises(ValidationError) as refused:
                field.run_validation(text)
            assert "a year of the Buddhist calendar: write" in str(refused.value)
    assert "2569 is a year of the Buddhist calendar: write 2026" in str(dates.buddhist_year("2569-11-21"))


def test_first_and_last_date_mean_no_bound_in_every_time_zone() -> None:
    query = PeriodPageQuery()
    for zone in ("UTC", "Asia/Bangkok", "America/New_York"):
        found = query.run_validation({"start_date": "0001-01-01", "end_date": "9999-12-31", "timezone": zone})
        assert found["start_date"] <= datetime(1, 1, 1, 12, tzinfo=UTC)
        assert found["end_date"] == dates.END
    for text in ("9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59-14:00", "9999-12-31T23:59:59"):
        assert UNTIL.run_validation(text) >= dates.END - timedelta(seconds=1)
    assert FROM.run_validation("0001-01-01T00:00:00+14:00") == dates.BEGINNING


def test_start_date_after_end_date_is_refused() -> None:
    query = PeriodPageQuery()
    day, ten = "2026-11-21", "2026-11-21T10:00:00Z"
    same_day = query.run_validation({"start_date": day, "end_date": day})
    assert (same_day["start_date"], same_day["end_date"]) == (
        FROM.run_validation(day),
        UNTIL.run_validation(day),
    )
    assert query.run_validation({"start_date": ten})["start_date"] == FROM.run_validation(ten)
    for before in ("2026-11-21T09:59:59.999Z", "2026-11-20"):
        with pytest.raises(ValidationError):
            query.run_validation({"start_date": ten, "end_date": before})


def test_dates_are_days_of_the_time_zone() -> None:
    query = PeriodPageQuery()
    day = {"start_date": "2026-11-21", "end_date": "2026-11-21"}
    found = query.run_validation({**day, "timezone": "Asia/Bangkok"})
    assert found["start_date"] == datetime(2026, 11, 20, 17, tzinfo=UTC)
    assert found["end_date"] == datetime(2026, 11, 21, 17, tzinfo=UTC)
    assert "timezone" not in found
    assert query.run_validation({**day, "timezone": "UTC"}) == query.run_validation(day)
    # The day on which clocks in London go back has 25 hours.
    autumn = {"start_date": "2026-10-25", "end_date": "2026-10-25", "timezone": "Europe/London"}
    london = query.run_validation(autumn)
    assert london["end_date"] - london["start_date"] == timedelta(hours=25)


def test_instant_does_not_depend_on_the_time_zone() -> None:
    at = "2026-11-21T10:00:00+07:00"
    found = PeriodPageQuery().run_validation({"start_date": at, "end_date": at, "timezone": "Asia/Tokyo"})
    assert (found["start_date"], found["end_date"]) == (FROM.run_validation(at), UNTIL.run_validation(at))


@pytest.mark.parametrize(
    "zone",
    ["", "Bangkok", "asia/bangkok", "+07:00", "Asia/Bangkok ", "../../etc/passwd", "America", "/", "\0"],
)
def test_unknown_time_zone_is_refused(zone: str) -> None:
    with pytest.raises(ValidationError) as refused:
        PeriodPageQuery().run_validation({"timezone": zone})
    assert set(refused.value.detail) == {"timezone"}
