"""Time-outs of database sessions, and a check of the sessions behind a pooler.

A pooler such as PgBouncer in transaction mode may give each transaction another session. Then settings of a
session are lost: time-outs given at its start, and prepared statements.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any
from uuid import uuid4

from django.conf import settings
from django.db import transaction
from psycopg.pq import TransactionStatus

TIME_LIMITS = ("lock_timeout", "statement_timeout", "idle_in_transaction_session_timeout")
_SETTINGS_SQL = "SELECT pg_backend_pid(), current_setting('timezone'), " + ", ".join(
    f"current_setting('{name}')" for name in TIME_LIMITS
)
PREPARE_HINT = "Set DATABASE_PREPARE=0, and set the time-outs by `manage.py set_role_limits`."
POOLER_HINT = "Set max_prepared_statements in PgBouncer 1.22 or newer, or DATABASE_PREPARE=0."
LIMITS_HINT = "Run `manage.py set_role_limits`, then RECONNECT in the console of the pooler."


def find_problem(connection: Any) -> tuple[str, str] | None:
    """What is wrong with the sessions, and a hint. Raises DatabaseError."""
    with connection.cursor() as cursor:
        cursor.execute(_SETTINGS_SQL)
        pid, timezone, *limits = cursor.fetchone()
    # A pooler sends its clients an invented process id, because their sessions change.
    is_pooled = pid != connection.connection.info.backend_pid
    if is_pooled and settings.DATABASE_PREPARE == "1":
        return "The database is behind a pooler, and DATABASE_PREPARE is on.", PREPARE_HINT
    if is_pooled and settings.DATABASE_PREPARE == "pooler" and not _are_statements_followed(connection):
        return "The pooler does not follow prepared statements.", POOLER_HINT
    off = [name for name, value in zip(TIME_LIMITS, limits, strict=True) if value == "0"]
    if off:
        return f"Sessions of the database have no {', '.join(off)}.", LIMITS_HINT
    if timezone != "UTC":
        return f"Sessions of the database have the time zone {timezone} instead of UTC.", LIMITS_HINT
    return None


def _are_statements_followed(connection: Any) -> bool:
    """Whether the pooler prepares our statements under names of its own, in each session that it uses."""
    name = f"probe_{uuid4().hex}"
    with transaction.atomic(connection.alias), connection.cursor() as cursor:
        server = connection.connection.pgconn
        server.prepare(name.encode(), b"SELECT 1")
        cursor.execute("SELECT count(*) FROM pg_prepared_statements WHERE name = %s", [name])
        (found,) = cursor.fetchone()
        server.close_prepared(name.encode())
    return not found


@contextmanager
def limit_statements(connection: Any, seconds: int) -> Iterator[None]:
    """End each statement after `seconds`. Raises OperationalError, caused by QueryCanceled, in its place.

    The limit is set by SET LOCAL in the statement's own transaction. It ends there, so it does not affect
    another request, or another client behind a pooler.
    """

    def execute_limited(execute: Callable[..., Any], sql: Any, params: Any, many: bool, context: Any) -> Any:
        with nullcontext() if connection.in_atomic_block else transaction.atomic(connection.alias):
            # After an error the server accepts only a rollback.
            if connection.connection.info.transaction_status != TransactionStatus.INERROR:
                connection.connection.execute(f"SET LOCAL statement_timeout = '{seconds}s'", prepare=False)
            return execute(sql, params, many, context)

    with connection.execute_wrapper(execute_limited):
        yield
