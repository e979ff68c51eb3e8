"""A stretch of time in months, days, hours and minutes."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from random import Random

import pytest

from transactions.models import Span
from transactions.spans import BEGINNING, END, Piece, ceiling, floor, pieces

AT = datetime(2026, 11, 21, 5, 4, 3, 2000, UTC)


def stretch(start: str, end: str) -> list[tuple[str, str, str]]:
    first, last = (datetime.fromisoformat(text).replace(tzinfo=UTC) for text in (start, end))
    return [
        (found.span or "-", f"{found.start:%d %H:%M:%S}", f"{found.end:%d %H:%M:%S}")
        for found in pieces(first, last)
    ]


@pytest.mark.parametrize(
    ("span", "begun", "next_one"),
    [
        (Span.MONTH, datetime(2026, 11, 1, tzinfo=UTC), datetime(2026, 12, 1, tzinfo=UTC)),
        (Span.DAY, datetime(2026, 11, 21, tzinfo=UTC), datetime(2026, 11, 22, tzinfo=UTC)),
        (Span.HOUR, datetime(2026, 11, 21, 5, tzinfo=UTC), datetime(2026, 11, 21, 6, tzinfo=UTC)),
        (Span.MINUTE, datetime(2026, 11, 21, 5, 4, tzinfo=UTC), datetime(2026, 11, 21, 5, 5, tzinfo=UTC)),
    ],
)
def test_a_moment_lies_in_one_of_each(span: Span, begun: datetime, next_one: datetime) -> None:
    assert (floor(AT, span), ceiling(AT, span)) == (begun, next_one)
    assert (floor(begun, span), ceiling(begun, span)) == (begun, begun)


def test_the_ends_are_cut_finer_and_finer() -> None:
    assert stretch("2026-10-31T22:58:30", "2026-12-02T01:01:30") == [
        ("-", "31 22:58:30", "31 22:59:00"),
        ("minute", "31 22:59:00", "31 23:00:00"),
        ("hour", "31 23:00:00", "01 00:00:00"),
        ("month", "01 00:00:00", "01 00:00:00"),
        ("day", "01 00:00:00", "02 00:00:00"),
        ("hour", "02 00:00:00", "02 01:00:00"),
        ("minute", "02 01:00:00", "02 01:01:00"),
        ("-", "02 01:01:00", "02 01:01:30"),
    ]


@pytest.mark.parametrize("end", ["05:04:59", "05:05:00", "05:05:03", "05:05:59"])
def test_a_stretch_without_a_whole_minute_is_one_cut(end: str) -> None:
    found = stretch("2026-11-21T05:04:03", f"2026-11-21T{end}")
    assert found == [("-", "21 05:04:03", f"21 {end}")]


def test_all_of_time_is_whole_months() -> None:
    assert pieces(BEGINNING, END) == [Piece(Span.MONTH, BEGINNING, END)]


def test_no_time_is_nothing() -> None:
    assert pieces(AT, AT) == pieces(END, END) == pieces(AT, BEGINNING) == []


@pytest.mark.parametrize("seed", range(200))
def test_pieces_touch_and_are_whole(seed: int) -> None:
    chance = Random(seed)
    start = AT + timedelta(milliseconds=chance.randrange(10 ** chance.randint(1, 12)))
    end = start + timedelta(milliseconds=chance.randrange(1, 10 ** chance.randint(1, 12)))
    found = pieces(start, end)
    assert (found[0].start, found[-1].end) == (start, end)
    assert all(one.end == other.start for one, other in pairwise(found))
    assert len(found) <= 9
    for piece in found:
        if piece.span:
            assert floor(piece.start, piece.span) == piece.start
            assert floor(piece.end, piece.span) == piece.end
        else:
            assert piece.end - piece.start < timedelta(minutes=2)
