"""Pages of a payment's timeline, newest first, for merchants and for staff.

The database sorts the times of all rows and returns the keys of one page; only its rows are read. So a page
needs the same number of statements however many rows the payment has.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import F, QuerySet, SmallIntegerField, TextField, Value
from django.db.models.functions import Cast, Collate
from django.utils.translation import gettext

from core import clock, failures, money
from core.console import personal_data
from payments.models import Payment
from reconciliation.matching import deduplication
from reconciliation.models import HELD_RESULTS, BankTransaction, BankTransactionKind, ReportSource
from timeline import bank, decisions, payment, refunds, transfers, webhooks
from timeline.entries import EntrySource, PaymentContext, TimelineEntry

STAFF_PAGE_SIZE = 50
# Cause before effect: the order of entries within one millisecond.
GROUPS: list[Callable[[PaymentContext], list[EntrySource]]] = [
    payment.begun,
    bank.sources,
    decisions.resolutions,
    decisions.notes,
    payment.ended,
    refunds.begun,
    decisions.approvals,
    transfers.sources,
    refunds.ended,
    webhooks.sources,
]


def entry_sources(context: PaymentContext) -> list[EntrySource]:
    return [source for group in GROUPS for source in group(context)]


def page(context: PaymentContext, *, limit: int, offset: int) -> tuple[list[TimelineEntry], int]:
    """Return the entries from `offset` on, newest first, and the total."""
    sources = entry_sources(context)
    first, *others = (_keys_of(number, source) for number, source in enumerate(sources))
    keys = first.union(*others, all=True)
    total = keys.count()
    if offset >= total:
        return [], total
    wanted = list(keys.order_by("-entry_at", "-source_number", "-entry_key")[offset : offset + limit])
    entries = _load_entries(sources, wanted)
    return [entries[number, key] for _, number, key in wanted if (number, key) in entries], total


def sources(subject: Payment) -> list[ReportSource]:
    """Return how the bank reported the money that paid, or else the money that did not fit."""
    reported = BankTransaction.objects.credited().filter(payment=subject)
    if subject.completed_at is None:
        reported = BankTransaction.objects.filter(
            payment=subject, match_result__in=HELD_RESULTS, kind=BankTransactionKind.CREDIT
        )
    return deduplication.sources_of(reported)


@dataclass(frozen=True, slots=True)
class StaffPage:
    """Entries with their details, newest first, and the offsets of the newer and the older page."""

    entries: list[tuple[TimelineEntry, list[tuple[str, str]]]]
    total: int
    sources: list[tuple[str, bool]]
    newer: int | None
    older: int | None


def staff_page(subject: Payment, offset_text: str, *, with_notes: bool) -> StaffPage:
    """The console's page from the entry with this number on, or the first page if it is not a number."""
    is_number = offset_text.isascii() and offset_text.isdigit() and len(offset_text) < 10
    offset = int(offset_text) if is_number else 0
    context = PaymentContext.of(subject, clock.now(), for_staff=True, with_notes=with_notes)
    entries, total = page(context, limit=STAFF_PAGE_SIZE, offset=offset)
    reported = sources(subject)
    return StaffPage(
        entries=[(entry, list(_detail_rows(entry))) for entry in entries],
        total=total,
        sources=[(gettext(str(source.label)).lower(), source in reported) for source in ReportSource],
        newer=max(0, offset - STAFF_PAGE_SIZE) if offset else None,
        older=offset + STAFF_PAGE_SIZE if offset + STAFF_PAGE_SIZE < total else None,
    )


def _detail_rows(entry: TimelineEntry) -> Iterator[tuple[str, str]]:
    for name, value in (entry.details | entry.internal).items():
        if value in (None, ""):
            continue
        if name == "payer_account" and personal_data.is_hidden():
            yield name, personal_data.MASK * len(value)
        elif name == "amount":
            yield name, money.display(value)
        elif name == "failure_code":
            yield name, failures.words_and_code(value)
        elif name.endswith("_at"):
            yield name, clock.display(datetime.fromisoformat(value))
        else:
            yield name, str(value)


def _keys_of(number: int, source: EntrySource) -> QuerySet[Any, Any]:
    keys: QuerySet[Any, Any] = (
        source.rows.order_by()
        .annotate(
            entry_at=F(source.time_column),
            source_number=Value(number, output_field=SmallIntegerField()),
            entry_key=Collate(Cast("pk", TextField()), "C"),
        )
        .values_list("entry_at", "source_number", "entry_key")
    )
    return keys


def _load_entries(
    sources: list[EntrySource], wanted: list[tuple[Any, int, str]]
) -> dict[tuple[int, str], TimelineEntry]:
    """The entries by the number of their source and the key of their row."""
    times: dict[int, dict[str, datetime]] = defaultdict(dict)
    for at, number, key in wanted:
        times[number][key] = at
    found = {}
    for number, by_key in times.items():
        for row in sources[number].rows.filter(pk__in=list(by_key)):
            row.entry_at = by_key[str(row.pk)]
            found[number, str(row.pk)] = sources[number].to_entry(row)
    return found
