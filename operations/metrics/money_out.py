"""Metrics of money that goes out: transfers, circuit breakers, approvals, debts and held withdrawals."""

from collections.abc import Iterator
from datetime import datetime

from django.db.models import Count, Min, Sum
from prometheus_client.core import Metric

from approvals.models import Approval, ApprovalKind
from ledger import services as ledger
from operations.metrics.families import age, few, gauge, gauges
from transfers.models import CircuitBreaker, Transfer
from transfers.schedule import OVERDUE_AFTER
from withdrawals.models import Withdrawal


def read(now: datetime) -> Iterator[Metric]:
    yield gauge("transfers_overdue", few(Transfer.objects.open_since(now - OVERDUE_AFTER)))
    breakers = CircuitBreaker.objects.filter(open_until__gt=now).values_list("route").order_by("route")
    yield gauges("circuit_breakers_open", "route", dict(breakers.annotate(count=Count("pk"))))
    waiting = Approval.objects.waiting()
    counts = dict(waiting.order_by().values_list("kind").annotate(Count("pk")))
    yield gauges("approvals_waiting", "kind", {kind: counts.get(kind, 0) for kind in ApprovalKind.values})
    oldest = waiting.aggregate(at=Min("requested_at"))["at"]
    yield gauge("approvals_oldest_waiting_seconds", age(now, oldest))
    debts = ledger.debts()
    held = Withdrawal.objects.held(debts).aggregate(count=Count("pk"), satang=Sum("amount", default=0))
    yield gauge("merchants_in_debt", len(debts))
    yield gauge("merchant_debt_satang", sum(debts.values()))
    yield gauge("withdrawals_held", held["count"])
    yield gauge("withdrawals_held_satang", held["satang"])
