"""Whether the sessions of the database are as the service needs them, also behind a pooler.

A pooler such as PgBouncer in transaction mode may give each transaction another session. Nothing that was set
for a session holds then: neither time-outs given at its start nor prepared statements.
"""

from typing import Any

from django.conf import settings

TIME_LIMITS = ("lock_timeout", "statement_timeout", "idle_in_transaction_session_timeout")
_SETTINGS_SQL = "SELECT pg_backend_pid(), current_setting('timezone'), " + ", ".join(
    f"current_setting('{name}')" for name in TIME_LIMITS
)
PREPARE_HINT = "Set DATABASE_PREPARE=0, and set the time-outs by `python manage.py set_role_limits`."
LIMITS_HINT = "Run `python manage.py set_role_limits`, then RECONNECT in the console of the pooler."


def find_problem(connection: Any) -> tuple[str, str] | None:
    """What is wrong with the sessions, and what to do about it. One statement. Raises DatabaseError."""
    with connection.cursor() as cursor:
        cursor.execute(_SETTINGS_SQL)
        pid, timezone, *limits = cursor.fetchone()
    # A pooler makes up the process id that it tells its clients, since their sessions change.
    is_pooled = pid != connection.connection.info.backend_pid
    if is_pooled and settings.DATABASE_PREPARE:
        return "The database is behind a pooler, and DATABASE_PREPARE is on.", PREPARE_HINT
    off = [name for name, value in zip(TIME_LIMITS, limits, strict=True) if value == "0"]
    if off:
        return f"Sessions of the database have no {', '.join(off)}.", LIMITS_HINT
    if timezone != "UTC":
        return f"Sessions of the database have the time zone {timezone} instead of UTC.", LIMITS_HINT
    return None
