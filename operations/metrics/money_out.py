"""Metrics of money that goes out: transfers, circuit breakers, approvals, debts and held withdrawals."""

from collections.abc import Iterator
from datetime import datetime

from django.db.models import Count, Min, Sum
from prometheus_client.core import Metric

from approvals.models import Approval, ApprovalKind
from core import admin_lists
from ledger import services as ledger
from operations.metrics.families import count, gauge, gauges
from transfers.models import CircuitBreaker, Transfer
from transfers.schedule import OVERDUE_AFTER
from withdrawals.models import Withdrawal


def read(now: datetime) -> Iterator[Metric]:
    yield from _transfers(now)
    yield from _approvals(now)
    yield from _merchant_debts()


def _transfers(now: datetime) -> Iterator[Metric]:
    overdue = count(Transfer.objects.open_since(now - OVERDUE_AFTER), admin_lists.MAX_COUNTED)
    help_text = f"Transfers without a final status for too long. Counted up to {admin_lists.MAX_COUNTED}."
    yield gauge("transfers_overdue", help_text, overdue)
    breakers = CircuitBreaker.objects.filter(open_until__gt=now).values_list("route")
    counts = dict(breakers.annotate(count=Count("pk")).order_by("route"))
    yield gauges("circuit_breakers_open", "Open circuit breakers of banks and acquirers.", "route", counts)


def _approvals(now: datetime) -> Iterator[Metric]:
    waiting = Approval.objects.waiting()
    counts = dict(waiting.order_by().values_list("kind").annotate(Count("pk")))
    by_kind = {kind: counts.get(kind, 0) for kind in ApprovalKind.values}
    yield gauges("approvals_waiting", "Outgoing money that waits for approval.", "kind", by_kind)
    oldest = waiting.aggregate(at=Min("requested_at"))["at"]
    yield gauge(
        "approvals_oldest_waiting_seconds",
        "Age of the oldest request that waits for approval, or 0.",
        0.0 if oldest is None else (now - oldest).total_seconds(),
    )


def _merchant_debts() -> Iterator[Metric]:
    debts = ledger.debts()
    held = Withdrawal.objects.held(debts).aggregate(count=Count("pk"), satang=Sum("amount", default=0))
    for name, help_text, value in [
        ("merchants_in_debt", "Merchants whose balance is negative after a reversal.", len(debts)),
        ("merchant_debt_satang", "Sum of their negative balances, in satang.", sum(debts.values())),
        ("withdrawals_held", "Withdrawals held back because of a negative balance.", held["count"]),
        ("withdrawals_held_satang", "Sum of held withdrawals, in satang.", held["satang"]),
    ]:
        yield gauge(name, help_text, value)
