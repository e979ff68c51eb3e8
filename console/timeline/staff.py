"""The timeline as staff see it: names, reasons, and the time of day in Bangkok."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils.timezone import localtime

from console.timeline import reading
from console.timeline.entries import Entry, Subject
from core import clock, money
from payments.models import Payment
from receipts.models import Source

AT_ONCE = 50


@dataclass(frozen=True, slots=True)
class Page:
    """Some entries, newest first; where the next page and the one before begin, if there are any."""

    entries: list[tuple[Entry, list[tuple[str, str]]]]
    total: int
    witnesses: list[tuple[str, bool]]
    newer: int | None
    older: int | None


def page(payment: Payment, begin: str) -> Page:
    """From entry number `begin` on, as the address says it; nonsense is the first page."""
    offset = _number(begin)
    entries, total = reading.page(Subject.of(payment, clock.now()), limit=AT_ONCE, offset=offset)
    agree = reading.witnesses(payment)
    return Page(
        entries=[(entry, list(_particulars(entry))) for entry in entries],
        total=total,
        witnesses=[(source.value, source in agree) for source in Source],
        newer=max(0, offset - AT_ONCE) if offset else None,
        older=offset + AT_ONCE if offset + AT_ONCE < total else None,
    )


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0


def _particulars(entry: Entry) -> Iterator[tuple[str, str]]:
    for name, value in (entry.details | entry.internal).items():
        if value not in (None, ""):
            yield name, _readable(name, value)


def _readable(name: str, value: Any) -> str:
    if name == "amount":
        return money.display(value)
    if name.endswith("_at"):
        return f"{localtime(datetime.fromisoformat(value)):%Y-%m-%d %H:%M:%S}"
    return str(value)
