"""`/healthz`: this process answers. `/readyz`: the service does its work."""

from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, HttpResponse

from console import encryption, heartbeats
from console import openapi as docs
from console.monitoring import for_monitoring
from core import clock, http, rows
from core.http import Answer
from core.methods import safe_only
from core.postgres import sessions
from webhooks import backlog

OLDEST_DUE = timedelta(minutes=5)
CLOCK = "clock"


@docs.healthz
@safe_only
def healthz(request: HttpRequest) -> HttpResponse:
    return http.respond(Answer.of({"status": "ok"}))


@docs.readyz
@for_monitoring
@safe_only
def readyz(request: HttpRequest) -> HttpResponse:
    """200 with every check, or 503 that says which one failed. A warning changes no status."""
    checks = _checks(clock.now())
    ready = all(check["ok"] for check in checks.values())
    body = {
        "status": "ok" if ready else "unavailable",
        "warnings": [name for name, check in checks.items() if "warning" in check],
        "checks": checks,
    }
    return http.respond(Answer.of(body, 200 if ready else 503))


def _checks(now: datetime) -> dict[str, dict[str, Any]]:
    try:
        problem = sessions.find_problem(connection)
        pending = _unapplied_migrations()
    except DatabaseError:
        return {"database": {"ok": False}}
    checks: dict[str, dict[str, Any]] = {
        "database": {"ok": True},
        "database_sessions": {"ok": problem is None, "problem": problem and problem[0]},
        "migrations": {"ok": not pending, "pending": pending},
    }
    if pending:
        return checks
    checks["encryption_keys"] = {"ok": encryption.opens_key_check()}
    for name, is_silent in heartbeats.silent(now=now).items():
        checks[name if name == heartbeats.BEAT else f"worker_{name}"] = {"ok": not is_silent}
    checks[CLOCK] = _clock()
    age = backlog.oldest_due_seconds(now)
    checks["deliveries"] = {"ok": age < OLDEST_DUE.total_seconds(), "oldest_due_seconds": age}
    return checks


def clock_difference() -> float:
    """Seconds by which the database's clock is ahead of this process's; negative if it is behind."""
    before = clock.now()
    ((database,),) = rows.run("SELECT clock_timestamp()", []).fetchall()
    after = clock.now()
    difference: timedelta = database - (before + (after - before) / 2)
    return round(difference.total_seconds(), 3)


def _clock() -> dict[str, Any]:
    """Codes expire by the application's clock, and leases by the database's: both should be right."""
    difference = clock_difference()
    check: dict[str, Any] = {"ok": True, "difference_seconds": difference}
    if abs(difference) > settings.CLOCK_WARNING_SECONDS:
        check["warning"] = "The clocks of application and database differ."
    return check


def _unapplied_migrations() -> int:
    executor = MigrationExecutor(connection)
    return len(executor.migration_plan(executor.loader.graph.leaf_nodes()))
