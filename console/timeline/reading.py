"""A page of a payment's timeline, newest first, and the witnesses of its money.

The database puts the times of all rows in order and gives the keys of one page; only its rows are read. So a
page costs the same few statements, however often a bank repeated itself or a webhook was tried.
"""

from collections import defaultdict
from collections.abc import Callable
from typing import Any

from django.db.models import F, QuerySet, SmallIntegerField, TextField, Value
from django.db.models.functions import Cast, Collate

from console.timeline import (
    approvals,
    bank,
    cards,
    decisions,
    fate,
    notifications,
    orders,
    refunds,
    returns,
    slips,
)
from console.timeline.entries import Entry, Moment, Subject
from payments.models import Payment
from receipts import witnesses as told_by
from receipts.models import HELD, Kind, Receipt, Source

# Cause before effect: the order of what happened in one millisecond.
KINDS: list[Callable[[Subject], Moment]] = [
    fate.births,
    fate.expiries,
    bank.inquiries,
    cards.inquiries,
    bank.unsigned,
    bank.notices,
    bank.lines,
    slips.checks,
    decisions.acts,
    decisions.dismissals,
    decisions.contradictions,
    fate.successes,
    fate.failures,
    refunds.created,
    refunds.addressed,
    approvals.requested,
    approvals.decided,
    orders.told,
    orders.unreached,
    orders.inquiries,
    orders.notices,
    orders.contradictions,
    returns.completed,
    returns.completed_by_hand,
    returns.failed,
    returns.canceled,
    returns.came_back,
    refunds.completed,
    refunds.whole,
    refunds.failed,
    refunds.canceled,
    refunds.came_back,
    notifications.asked,
    notifications.attempts,
    notifications.held,
    notifications.dropped,
]


def page(subject: Subject, *, limit: int, offset: int) -> tuple[list[Entry], int]:
    """The entries from `offset` on, newest first, and how many there are in all."""
    moments = [kind(subject) for kind in KINDS]
    keys = _keys(moments)
    total = keys.count()
    if offset >= total:
        return [], total
    wanted = list(keys.order_by("-moment_at", "-moment_kind", "-moment_key")[offset : offset + limit])
    told = _tell(moments, wanted)
    return [told[kind, key] for _, kind, key in wanted if (kind, key) in told], total


def witnesses(payment: Payment) -> list[Source]:
    """The ways by which the bank told of the money that paid for it, or else of money that did not fit."""
    reported = Receipt.objects.credited().filter(payment=payment)
    if payment.completed_at is None:
        reported = Receipt.objects.filter(payment=payment, outcome__in=HELD, kind=Kind.CREDIT)
    return told_by.of(reported)


def _keys(moments: list[Moment]) -> QuerySet[Any, Any]:
    first, *others = (_keys_of(number, moment) for number, moment in enumerate(moments))
    return first.union(*others, all=True)


def _keys_of(number: int, moment: Moment) -> QuerySet[Any, Any]:
    keys: QuerySet[Any, Any] = (
        moment.rows.order_by()
        .annotate(
            moment_at=F(moment.at),
            moment_kind=Value(number, output_field=SmallIntegerField()),
            moment_key=Collate(Cast("pk", TextField()), "C"),
        )
        .values_list("moment_at", "moment_kind", "moment_key")
    )
    return keys


def _tell(moments: list[Moment], wanted: list[tuple[Any, int, str]]) -> dict[tuple[int, str], Entry]:
    by_kind: dict[int, list[str]] = defaultdict(list)
    for _, kind, key in wanted:
        by_kind[kind].append(key)
    return {
        (kind, str(row.pk)): moments[kind].tell(row)
        for kind, keys in by_kind.items()
        for row in moments[kind].rows.filter(pk__in=keys)
    }
