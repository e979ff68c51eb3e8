"""Reports of unhandled errors by the protocol of Sentry, if SENTRY_DSN is set (extra `sentry`).

Each line of the log with a level of ERROR or above becomes one report. It has the kind of the error, its
first line without secrets, and where in the code it happened: no variables, no bodies, no headers, no user.
"""

import logging
from typing import Any

from django.conf import settings

from core import request_context, tls
from core.database.availability import is_unavailable
from core.observing.logs import redact

# What a report, and a frame of a traceback, may have.
REPORT = ("event_id", "timestamp", "level", "logger", "platform", "release", "environment", "sdk")
FRAME = ("filename", "function", "module", "lineno", "in_app")
MAX_LENGTH = 300
STOP_SECONDS = 2


def start(process: str) -> None:
    """Begin to report from this process."""
    if not settings.SENTRY_DSN:
        return
    # Only here: the package is optional.
    import sentry_sdk
    from sentry_sdk.integrations.logging import LoggingIntegration

    sentry_sdk.init(
        dsn=settings.SENTRY_DSN,
        ca_certs=tls.ca_file(),
        release=settings.VERSION,
        # Its integrations would read requests, statements and users.
        default_integrations=False,
        auto_enabling_integrations=False,
        integrations=[LoggingIntegration(level=None, event_level=logging.ERROR)],
        before_send=_only_what_is_safe,
        max_breadcrumbs=0,
        send_default_pii=False,
        include_local_variables=False,
        include_source_context=False,
        send_client_reports=False,
        auto_session_tracking=False,
        server_name=process,
        shutdown_timeout=STOP_SECONDS,
    )


def _only_what_is_safe(event: Any, hint: dict[str, Any]) -> Any:
    """A new report with the safe parts of `event`; None while the database is away, which is in the log."""
    error = (hint.get("exc_info") or (None, None))[1]
    if is_unavailable(error):
        return None
    kept = {name: event[name] for name in REPORT if name in event}
    kept["server_name"] = event.get("server_name")
    # The template, whose values may be paths or names.
    kept["logentry"] = {"message": redact(str((event.get("logentry") or {}).get("message", "")))[:MAX_LENGTH]}
    errors = (event.get("exception") or {}).get("values") or []
    kept["exception"] = {"values": [_safe_error(each) for each in errors]}
    if request_id := request_context.current().request_id:
        kept["tags"] = {"request_id": redact(request_id)}
    return kept


def _safe_error(error: Any) -> dict[str, Any]:
    """PostgreSQL puts values of the row into the lines after the first one."""
    frames = (error.get("stacktrace") or {}).get("frames") or []
    first_line = str(error.get("value") or "").partition("\n")[0]
    return {
        "type": error.get("type"),
        "module": error.get("module"),
        "value": redact(first_line)[:MAX_LENGTH],
        "stacktrace": {
            "frames": [{name: frame[name] for name in FRAME if name in frame} for frame in frames]
        },
    }
