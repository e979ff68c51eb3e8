"""The one clock: read at the edge, passed in from there. Leases and locks use the database's."""

from datetime import UTC, datetime, timedelta, timezone

BANGKOK = timezone(timedelta(hours=7))
"""Of Thai banks' days and times, all year round."""


def now() -> datetime:
    """The present instant in UTC, to the millisecond (what the database keeps)."""
    return to_millisecond(datetime.now(UTC))


def to_millisecond(at: datetime) -> datetime:
    """`at` without what is finer than a millisecond."""
    return at.replace(microsecond=at.microsecond // 1000 * 1000)


def iso(at: datetime) -> str:
    """`2026-11-21T03:04:05.123Z`, the form of every timestamp in the API."""
    return at.astimezone(UTC).isoformat(timespec="milliseconds")[:-6] + "Z"


def iso_or_none(at: datetime | None) -> str | None:
    return None if at is None else iso(at)
