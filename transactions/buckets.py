"""Pure: a stretch of time as whole months, days, hours and minutes, and what is left at its two ends."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from transactions.models import CountBucket

# Wider than any history, and both ends begin a month.
BEGINNING = datetime(1, 1, 1, tzinfo=UTC)
END = datetime(9999, 12, 1, tzinfo=UTC)
BUCKETS = tuple(CountBucket)
BUCKET_WIDTHS = {
    CountBucket.DAY: timedelta(days=1),
    CountBucket.HOUR: timedelta(hours=1),
    CountBucket.MINUTE: timedelta(minutes=1),
}
LONGEST_MONTH = timedelta(days=31)


@dataclass(frozen=True, slots=True)
class TimeRange:
    """From `start` until before `end`, in whole buckets, or in none (`bucket` is None)."""

    bucket: CountBucket | None
    start: datetime
    end: datetime


def split(start: datetime, end: datetime, buckets: tuple[CountBucket, ...] = BUCKETS) -> list[TimeRange]:
    """The stretch from `start` until before `end` in order of time, in the widest buckets that fit."""
    if start >= end:
        return []
    if not buckets:
        return [TimeRange(None, start, end)]
    bucket, *narrower = buckets
    first, last = next_bucket_start(start, bucket), bucket_start(end, bucket)
    if first >= last:
        return split(start, end, tuple(narrower))
    return [
        *split(start, first, tuple(narrower)),
        TimeRange(bucket, first, last),
        *split(last, end, tuple(narrower)),
    ]


def bucket_start(at: datetime, bucket: CountBucket) -> datetime:
    """The beginning of the bucket that `at` lies in."""
    if bucket is CountBucket.MONTH:
        return datetime(at.year, at.month, 1, tzinfo=UTC)
    return at - (at - BEGINNING) % BUCKET_WIDTHS[bucket]


def next_bucket_start(at: datetime, bucket: CountBucket) -> datetime:
    """`at` where it begins a bucket, else the beginning of the next."""
    begun = bucket_start(at, bucket)
    if begun == at:
        return at
    return (
        bucket_start(begun + LONGEST_MONTH, bucket)
        if bucket is CountBucket.MONTH
        else begun + BUCKET_WIDTHS[bucket]
    )
