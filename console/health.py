"""`/healthz`: this process answers. `/readyz`: the service does its work."""

from datetime import datetime, timedelta
from typing import Any

from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, HttpResponse

from console import encryption, heartbeats
from console import openapi as docs
from console.monitoring import for_monitoring
from core import clock, http
from core.http import Answer
from core.methods import safe_only
from core.postgres import sessions
from webhooks import backlog

OLDEST_DUE = timedelta(minutes=5)


@docs.healthz
@safe_only
def healthz(request: HttpRequest) -> HttpResponse:
    return http.respond(Answer.of({"status": "ok"}))


@docs.readyz
@for_monitoring
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
    age = backlog.oldest_due_seconds(now)
    checks["deliveries"] = {"ok": age < OLDEST_DUE.total_seconds(), "oldest_due_seconds": age}
    return checks


def _unapplied_migrations() -> int:
    executor = MigrationExecutor(connection)
    return len(executor.migration_plan(executor.loader.graph.leaf_nodes()))
