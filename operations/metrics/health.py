"""`/healthz`: this process answers. `/readyz`: the service is ready and works."""

from collections.abc import Callable
from datetime import datetime, timedelta
from functools import wraps
from typing import Any

from django.conf import settings
from django.core.cache import caches
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, HttpResponse
from django.utils.crypto import constant_time_compare

from apidocs import openapi as docs
from core import clock
from core.database import rows, sessions
from core.http import api, responses
from core.http.api import get_or_head_only
from core.http.responses import ApiResponse
from merchants.errors import AuthenticationFailed
from operations.data_protection import resealing
from operations.nightly import heartbeats
from transfers import safe_mode
from webhooks.delivery import metrics as deliveries

View = Callable[[HttpRequest], HttpResponse]
MonitoringTokenRefused = AuthenticationFailed.worded("The monitoring token is missing or wrong.")


def require_monitoring_token(view: View) -> View:
    """Refuse requests without the monitoring token as `Authorization: Bearer ...`."""

    @wraps(view)
    def guarded(request: HttpRequest) -> HttpResponse:
        given = request.META.get("HTTP_AUTHORIZATION", "")
        token = settings.MONITORING_TOKEN
        if token and not constant_time_compare(given, f"Bearer {token}"):
            return api.error_response(MonitoringTokenRefused(), request)
        return view(request)

    return guarded


# Strangers may ask. `config.concurrency` lets one thread of a process answer at once.
KEPT_SECONDS = 1
MAX_DUE_AGE = timedelta(minutes=5)
CLOCK_CHECK = "clock"


@docs.healthz
@get_or_head_only
def healthz(request: HttpRequest) -> HttpResponse:
    return responses.to_django(ApiResponse.of({"status": "ok"}))


@docs.readyz
@require_monitoring_token
@get_or_head_only
def readyz(request: HttpRequest) -> HttpResponse:
    """200 with all checks, or 503 if one failed. A warning does not change the status."""
    kept: Any = caches["process"].get_or_set("readiness", _readiness, KEPT_SECONDS)
    return responses.to_django(kept)


def _readiness() -> ApiResponse:
    checks = _checks(clock.now())
    ready = all(check["ok"] for check in checks.values())
    warnings = [name for name, check in checks.items() if "warning" in check]
    body = {"status": "ok" if ready else "unavailable", "warnings": warnings, "checks": checks}
    return ApiResponse.of(body, 200 if ready else 503)


def _checks(now: datetime) -> dict[str, dict[str, Any]]:
    try:
        problem = sessions.find_problem(connection)
        executor = MigrationExecutor(connection)
        pending = len(executor.migration_plan(executor.loader.graph.leaf_nodes()))
    except DatabaseError:
        return {"database": {"ok": False}}
    checks: dict[str, dict[str, Any]] = {
        "database": {"ok": True},
        "database_sessions": {"ok": problem is None, "problem": problem and problem[0]},
        "migrations": {"ok": not pending, "pending": pending},
    }
    if pending:
        return checks
    checks["encryption_keys"] = {"ok": resealing.opens_key_check()}
    for name, is_silent in heartbeats.silent(now=now).items():
        checks[name if name == heartbeats.BEAT else f"worker_{name}"] = {"ok": not is_silent}
    # Codes expire by the clock of the application, leases by the clock of the database.
    difference = clock_difference()
    checks[CLOCK_CHECK] = {"ok": True, "difference_seconds": difference}
    if abs(difference) > settings.CLOCK_WARNING_SECONDS:
        checks[CLOCK_CHECK]["warning"] = "The clocks of application and database differ."
    checks["safe_mode"] = {"ok": True, "is_on": safe_mode.is_on()}
    if checks["safe_mode"]["is_on"]:  # it waits for staff, and all else works
        checks["safe_mode"]["warning"] = "No money is sent until staff have compared it with the banks."
    age = deliveries.oldest_due_seconds(now)
    checks["deliveries"] = {"ok": age < MAX_DUE_AGE.total_seconds(), "oldest_due_seconds": age}
    return checks


def clock_difference() -> float:
    """The database clock minus the clock of this process, in seconds."""
    before = clock.now()
    (database,) = rows.run("SELECT clock_timestamp()", []).fetchone()
    after = clock.now()
    difference: timedelta = database - (before + (after - before) / 2)
    return round(difference.total_seconds(), 3)
