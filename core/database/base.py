"""Django's PostgreSQL backend with faster cursors, timestamps and health checks: the setting ENGINE."""

import select
from collections.abc import Sequence
from typing import Any, cast

import psycopg
from django.conf import settings
from django.db.backends.postgresql import base
from psycopg.adapt import AdaptersMap
from psycopg.pq import Format

from core.database.prepared import PreparedStatements, numbered

# The driver's own loader of instants, written in C. Django's loader sets the time zone in Python. That is not
# needed, because each session has UTC (SESSION_PARAMETERS in the settings).
INSTANT = psycopg.adapters.get_loader(base.TIMESTAMPTZ_OID, Format.TEXT)


class NumberingCursor(psycopg.RawCursor[Any]):
    """Converts the placeholders of each statement once.

    psycopg's usual cursor converts a statement with over 50 values or 4 kB each time, which takes 0.2 ms.
    """

    def execute(self, query: Any, params: Any = None, **options: Any) -> Any:
        return super().execute(numbered(query), params, **options)


class DatabaseWrapper(base.DatabaseWrapper):
    _prepared: PreparedStatements | None = None
    _raw_cursor: Any = None
    _owner: Any = None  # of both

    def execute_fast(self, sql: str, values: Sequence[Any]) -> Any:
        """Run a statement with `%s` placeholders. The result is there until the next statement.

        A new cursor for each statement would cost two thirds of the time of a short one.
        """
        if self.queries_logged:
            cursor = self.cursor()
            cursor.execute(sql, values)
            return cursor
        self.close_if_health_check_failed()
        if self.connection is None:
            self.ensure_connection()
        if self._owner is not self.connection:
            self._raw_cursor = self.make_cursor(cast(Any, NumberingCursor(self.connection)))
            prepares = settings.DATABASE_PREPARE != "0"
            self._prepared = PreparedStatements(self.connection) if prepares else None
            self._owner = self.connection
        prepared = self._prepared
        if prepared is None or prepared.is_full or self.in_atomic_block or self.execute_wrappers:
            self._raw_cursor.execute(sql, values)
            return self._raw_cursor
        with self.wrap_database_errors:
            return prepared.execute(sql, values)

    def _rollback(self) -> None:
        super()._rollback()  # type: ignore[misc]
        self._forget_prepared()

    def _savepoint_rollback(self, sid: str) -> None:
        super()._savepoint_rollback(sid)  # type: ignore[misc]
        self._forget_prepared()

    def _forget_prepared(self) -> None:
        """psycopg sends DEALLOCATE ALL after a rollback. PostgreSQL logs each use of a lost statement."""
        if self._prepared is not None:
            self._prepared.forget()

    def get_connection_params(self) -> dict[str, Any]:
        params: dict[str, Any] = super().get_connection_params()
        params["context"] = AdaptersMap(params["context"])
        params["context"].register_loader("timestamptz", INSTANT)
        return params

    def create_cursor(self, name: str | None = None) -> Any:
        """A named cursor outlives its transaction, as Django's does."""
        if name is None:
            return self.connection.cursor()
        return self.connection.cursor(name, scrollable=False, withhold=self.connection.autocommit)

    def is_usable(self) -> bool:
        """Whether the connection is open, without a query, which would cost a round trip.

        A server that ends a session sends a message or closes the connection; both make the socket readable.
        If the server vanished, time-outs detect it, as they would with a query.
        """
        if self.connection is None or self.connection.closed:
            return False
        poll = select.poll()
        poll.register(self.connection.fileno(), select.POLLIN)
        return not poll.poll(0)
