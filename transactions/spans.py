"""Pure: a stretch of time as whole months, days, hours and minutes, and what is left at its two ends."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from transactions.tally_models import Span

# Wider than any history, and both ends begin a month.
BEGINNING = datetime(1, 1, 1, tzinfo=UTC)
END = datetime(9999, 12, 1, tzinfo=UTC)
SPANS = tuple(Span)
WIDTHS = {Span.DAY: timedelta(days=1), Span.HOUR: timedelta(hours=1), Span.MINUTE: timedelta(minutes=1)}
LONGEST_MONTH = timedelta(days=31)


@dataclass(frozen=True, slots=True)
class Piece:
    """From `start` until before `end`, in whole spans, or in none (`span` is None)."""

    span: Span | None
    start: datetime
    end: datetime


def pieces(start: datetime, end: datetime, spans: tuple[Span, ...] = SPANS) -> list[Piece]:
    """The stretch from `start` until before `end` in order of time, in the widest spans that fit."""
    if start >= end:
        return []
    if not spans:
        return [Piece(None, start, end)]
    span, *finer = spans
    first, last = ceiling(start, span), floor(end, span)
    if first >= last:
        return pieces(start, end, tuple(finer))
    return [
        *pieces(start, first, tuple(finer)),
        Piece(span, first, last),
        *pieces(last, end, tuple(finer)),
    ]


def floor(at: datetime, span: Span) -> datetime:
    """The beginning of the span that `at` lies in."""
    if span is Span.MONTH:
        return datetime(at.year, at.month, 1, tzinfo=UTC)
    return at - (at - BEGINNING) % WIDTHS[span]


def ceiling(at: datetime, span: Span) -> datetime:
    """`at` where it begins a span, else the beginning of the next."""
    begun = floor(at, span)
    if begun == at:
        return at
    return floor(begun + LONGEST_MONTH, span) if span is Span.MONTH else begun + WIDTHS[span]
