"""`/healthz`: this process answers. `/readyz`: the service does its work. `/metrics`: how well."""

from datetime import datetime, timedelta
from typing import Any

from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.db.models import Exists, Min, OuterRef
from django.http import HttpRequest, HttpResponse
from prometheus_client import CollectorRegistry, Gauge, generate_latest

from console import heartbeats
from console import openapi as docs
from core import clock, http
from core.http import Answer
from core.methods import safe_only
from payments.models import Payment, Status
from receipts import inbox
from receipts.models import Notice, Receipt
from refunds.models import Refund
from webhooks.models import Delivery, DeliveryState
from withdrawals.models import Withdrawal

OLDEST_DUE = timedelta(minutes=5)


@docs.healthz
@safe_only
def healthz(request: HttpRequest) -> HttpResponse:
    return http.respond(Answer.of({"status": "ok"}))


@docs.readyz
@safe_only
def readyz(request: HttpRequest) -> HttpResponse:
    """200 with every check, or 503 that says which one failed."""
    checks = _checks(clock.now())
    ready = all(check["ok"] for check in checks.values())
    return http.respond(
        Answer.of({"status": "ok" if ready else "unavailable", "checks": checks}, 200 if ready else 503)
    )


def _checks(now: datetime) -> dict[str, dict[str, Any]]:
    try:
        pending = _unapplied_migrations()
    except DatabaseError:
        return {"database": {"ok": False}}
    checks: dict[str, dict[str, Any]] = {
        "database": {"ok": True},
        "migrations": {"ok": not pending, "pending": pending},
    }
    if pending:
        return checks
    for name, is_silent in heartbeats.silent(now=now).items():
        checks[name if name == heartbeats.BEAT else f"worker_{name}"] = {"ok": not is_silent}
    age = oldest_due_seconds(now)
    checks["deliveries"] = {"ok": age < OLDEST_DUE.total_seconds(), "oldest_due_seconds": age}
    return checks


def _unapplied_migrations() -> int:
    executor = MigrationExecutor(connection)
    return len(executor.migration_plan(executor.loader.graph.leaf_nodes()))


def oldest_due_seconds(now: datetime) -> float:
    """How long the delivery that has waited longest is overdue; 0 when none is."""
    waiting = Delivery.objects.filter(state=DeliveryState.PENDING, due_at__lte=now)
    # Where an endpoint is being posted to, it is the endpoint that is slow.
    busy = Delivery.objects.filter(state=DeliveryState.LEASED, endpoint=OuterRef("endpoint"))
    due_at = waiting.exclude(Exists(busy)).aggregate(oldest=Min("due_at"))["oldest"]
    return 0.0 if due_at is None else round((now - due_at).total_seconds(), 3)


@docs.metrics
@safe_only
def metrics(request: HttpRequest) -> HttpResponse:
    """Prometheus text. Read from the database, so that every web process says the same."""
    now, registry = clock.now(), CollectorRegistry()
    due = Delivery.objects.filter(state=DeliveryState.PENDING, due_at__lte=now)
    overdue = Payment.objects.overdue(now)
    for name, help_text, value in [
        ("webhook_deliveries_due", "Deliveries that wait for a worker.", due.count()),
        ("webhook_oldest_due_seconds", "Age of the oldest due delivery.", oldest_due_seconds(now)),
        ("payments_pending", "Payments that wait for the bank.", _count_pending() - overdue.count()),
        ("payments_overdue", "Payments that the sweep has not expired yet.", overdue.count()),
        ("receipts_not_applied", "Receipts stored but not judged.", Receipt.objects.not_judged().count()),
        ("notices_for_staff", "Bank messages that wait for a person.", _count_notices()),
        ("receipts_for_staff", "Receipts that wait for a person.", Receipt.objects.for_staff().count()),
        ("refunds_returned", "Refunds whose money came back.", Refund.objects.returned().count()),
        ("withdrawals_for_staff", "Withdrawals that wait for a yes.", Withdrawal.objects.for_staff().count()),
    ]:
        Gauge(name, help_text, registry=registry).set(value)
    return HttpResponse(generate_latest(registry), content_type="text/plain; version=0.0.4; charset=utf-8")


def _count_notices() -> int:
    return Notice.objects.filter(verdict__in=inbox.FOR_STAFF).count()


def _count_pending() -> int:
    count: int = Payment.objects.filter(status=Status.PENDING).count()
    return count
