"""A stretch of time in months, days, hours and minutes."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from random import Random

import pytest

from transactions.buckets import BEGINNING, END, TimeRange, bucket_start, next_bucket_start, split
from transactions.models import CountBucket

AT = datetime(2026, 11, 21, 5, 4, 3, 2000, UTC)


def stretch(start: str, end: str) -> list[tuple[str, str, str]]:
    first, last = (datetime.fromisoformat(text).replace(tzinfo=UTC) for text in (start, end))
    return [
        (found.bucket or "-", f"{found.start:%d %H:%M:%S}", f"{found.end:%d %H:%M:%S}")
        for found in split(first, last)
    ]


@pytest.mark.parametrize(
    ("bucket", "begun", "next_one"),
    [
        (CountBucket.MONTH, datetime(2026, 11, 1, tzinfo=UTC), datetime(2026, 12, 1, tzinfo=UTC)),
        (CountBucket.DAY, datetime(2026, 11, 21, tzinfo=UTC), datetime(2026, 11, 22, tzinfo=UTC)),
        (CountBucket.HOUR, datetime(2026, 11, 21, 5, tzinfo=UTC), datetime(2026, 11, 21, 6, tzinfo=UTC)),
        (
            CountBucket.MINUTE,
            datetime(2026, 11, 21, 5, 4, tzinfo=UTC),
            datetime(2026, 11, 21, 5, 5, tzinfo=UTC),
        ),
    ],
)
def test_instant_lies_in_one_bucket_of_each_size(
    bucket: CountBucket, begun: datetime, next_one: datetime
) -> None:
    assert (bucket_start(AT, bucket), next_bucket_start(AT, bucket)) == (begun, next_one)
    assert (bucket_start(begun, bucket), next_bucket_start(begun, bucket)) == (begun, begun)


def test_range_is_split_into_smaller_buckets_at_both_ends() -> None:
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


def test_largest_range_is_split_into_months() -> None:
    assert split(BEGINNING, END) == [TimeRange(CountBucket.MONTH, BEGINNING, END)]


def test_empty_range_has_no_buckets() -> None:
    assert split(AT, AT) == split(END, END) == split(AT, BEGINNING) == []


@pytest.mark.parametrize("seed", range(200))
def test_buckets_of_a_range_are_contiguous(seed: int) -> None:
    chance = Random(seed)
    start = AT + timedelta(milliseconds=chance.randrange(10 ** chance.randint(1, 12)))
    end = start + timedelta(milliseconds=chance.randrange(1, 10 ** chance.randint(1, 12)))
    found = split(start, end)
    assert (found[0].start, found[-1].end) == (start, end)
    assert all(one.end == other.start for one, other in pairwise(found))
    assert len(found) <= 9
    for piece in found:
        if piece.bucket:
            assert bucket_start(piece.start, piece.bucket) == piece.start
            assert bucket_start(piece.end, piece.bucket) == piece.end
        else:
            assert piece.end - piece.start < timedelta(minutes=2)
