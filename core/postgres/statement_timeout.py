"""A shorter statement time-out for some of the statements of a connection."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from django.db import transaction
from psycopg.pq import TransactionStatus


@contextmanager
def limit_statements(connection: Any, seconds: int) -> Iterator[None]:
    """End each statement after `seconds`. Raises OperationalError, caused by QueryCanceled, in its place.

    The limit is set by SET LOCAL in the statement's own transaction. It ends there, so it can neither reach
    another request nor, behind a pooler, another client.
    """

    def execute_limited(execute: Callable[..., Any], sql: Any, params: Any, many: bool, context: Any) -> Any:
        if connection.in_atomic_block:
            _set_local(connection, seconds)
            return execute(sql, params, many, context)
        with transaction.atomic(connection.alias):
            _set_local(connection, seconds)
            return execute(sql, params, many, context)

    with connection.execute_wrapper(execute_limited):
        yield


def _set_local(connection: Any, seconds: int) -> None:
    # After an error only a rollback is taken, which must not be preceded by anything.
    if connection.connection.info.transaction_status != TransactionStatus.INERROR:
        connection.connection.execute(f"SET LOCAL statement_timeout = {seconds * 1000}", prepare=False)
