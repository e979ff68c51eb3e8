"""The timeline as staff see it: names, reasons, and the time of day in Bangkok."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils.timezone import localtime

from core import clock, money
from payments.models import Payment
from reconciliation.models import ReportSource
from timeline import pages
from timeline.entries import PaymentContext, TimelineEntry

PAGE_SIZE = 50


@dataclass(frozen=True, slots=True)
class TimelinePage:
    """Some entries, newest first; where the next page and the one before begin, if there are any."""

    entries: list[tuple[TimelineEntry, list[tuple[str, str]]]]
    total: int
    sources: list[tuple[str, bool]]
    newer: int | None
    older: int | None


def page(payment: Payment, begin: str) -> TimelinePage:
    """From entry number `begin` on, as the address says it; nonsense is the first page."""
    offset = _parse_offset(begin)
    entries, total = pages.page(PaymentContext.of(payment, clock.now()), limit=PAGE_SIZE, offset=offset)
    reported = pages.sources(payment)
    return TimelinePage(
        entries=[(entry, list(_detail_rows(entry))) for entry in entries],
        total=total,
        sources=[(source.value, source in reported) for source in ReportSource],
        newer=max(0, offset - PAGE_SIZE) if offset else None,
        older=offset + PAGE_SIZE if offset + PAGE_SIZE < total else None,
    )


def _parse_offset(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0


def _detail_rows(entry: TimelineEntry) -> Iterator[tuple[str, str]]:
    for name, value in (entry.details | entry.internal).items():
        if value not in (None, ""):
            yield name, _format_value(name, value)


def _format_value(name: str, value: Any) -> str:
    if name == "amount":
        return money.display(value)
    if name.endswith("_at"):
        return f"{localtime(datetime.fromisoformat(value)):%Y-%m-%d %H:%M:%S}"
    return str(value)
