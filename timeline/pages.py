"""A page of a payment's timeline, newest first, and the sources of its money.

The database puts the times of all rows in order and gives the keys of one page; only its rows are read. So a
page costs the same few statements, however often a bank repeated itself or a webhook was tried.
"""

from collections import defaultdict
from collections.abc import Callable
from typing import Any

from django.db.models import F, QuerySet, SmallIntegerField, TextField, Value
from django.db.models.functions import Cast, Collate

from payments.models import Payment
from reconciliation.matching import deduplication as report_sources
from reconciliation.models import HELD_RESULTS, BankTransaction, BankTransactionKind, ReportSource
from timeline import approvals, bank, cards, refunds, resolutions, returns, slips, transfers, webhooks
from timeline import payment as payment_entries
from timeline.entries import EntrySource, PaymentContext, TimelineEntry

# Cause before effect: the order of what happened in one millisecond.
SOURCES: list[Callable[[PaymentContext], EntrySource]] = [
    payment_entries.created,
    payment_entries.expired,
    bank.inquiries,
    cards.inquiries,
    bank.unsigned_notifications,
    bank.notifications,
    bank.statement_lines,
    slips.checks,
    resolutions.resolutions,
    resolutions.dismissals,
    resolutions.contradictions,
    payment_entries.succeeded,
    payment_entries.failed,
    refunds.created,
    refunds.destination_set,
    approvals.requested,
    approvals.decided,
    transfers.submitted,
    transfers.not_sent,
    transfers.inquiries,
    transfers.notifications,
    transfers.contradictions,
    returns.completed,
    returns.completed_manually,
    returns.failed,
    returns.canceled,
    returns.returned,
    refunds.completed,
    refunds.payment_refunded,
    refunds.failed,
    refunds.canceled,
    refunds.returned,
    webhooks.resends,
    webhooks.attempts,
    webhooks.held,
    webhooks.dropped,
]


def page(context: PaymentContext, *, limit: int, offset: int) -> tuple[list[TimelineEntry], int]:
    """The entries from `offset` on, newest first, and how many there are in all."""
    sources = [source(context) for source in SOURCES]
    keys = _keys(sources)
    total = keys.count()
    if offset >= total:
        return [], total
    wanted = list(keys.order_by("-entry_at", "-source_number", "-entry_key")[offset : offset + limit])
    entries = _load_entries(sources, wanted)
    return [entries[number, key] for _, number, key in wanted if (number, key) in entries], total


def sources(payment: Payment) -> list[ReportSource]:
    """The ways by which the bank told of the money that paid for it, or else of money that did not fit."""
    reported = BankTransaction.objects.credited().filter(payment=payment)
    if payment.completed_at is None:
        reported = BankTransaction.objects.filter(
            payment=payment, match_result__in=HELD_RESULTS, kind=BankTransactionKind.CREDIT
        )
    return report_sources.sources_of(reported)


def _keys(sources: list[EntrySource]) -> QuerySet[Any, Any]:
    first, *others = (_keys_of(number, source) for number, source in enumerate(sources))
    return first.union(*others, all=True)


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
    keys_by_source: dict[int, list[str]] = defaultdict(list)
    for _, number, key in wanted:
        keys_by_source[number].append(key)
    return {
        (number, str(row.pk)): sources[number].to_entry(row)
        for number, keys in keys_by_source.items()
        for row in sources[number].rows.filter(pk__in=keys)
    }
