"""Django's PostgreSQL backend with faster cursors, timestamps and health checks.

Django finds this module and class by the setting ENGINE.
"""

import select
from typing import Any

import psycopg
from django.db.backends.postgresql import base
from psycopg.adapt import AdaptersMap
from psycopg.pq import Format

# The driver's own loader of instants, written in C. Django's loader sets the time zone in Python. That is not
# needed, because each session has UTC (SESSION_PARAMETERS in the settings).
INSTANT = psycopg.adapters.get_loader(base.TIMESTAMPTZ_OID, Format.TEXT)


class DatabaseWrapper(base.DatabaseWrapper):
    _reusable_cursor: Any = None
    _cursor_owner: Any = None

    def reusable_cursor(self) -> Any:
        """A cursor for statements whose result is read before the next statement.

        A new cursor for each would cost two thirds of the time of a short statement.
        """
        if self.queries_logged:
            return self.cursor()
        self.close_if_health_check_failed()
        self.ensure_connection()
        if self._cursor_owner is not self.connection:
            self._reusable_cursor, self._cursor_owner = (
                self.make_cursor(self.create_cursor()),
                self.connection,
            )
        return self._reusable_cursor

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
        If the server vanished, time-outs notice it, as they would with a query.
        """
        if self.connection is None or self.connection.closed:
            return False
        poll = select.poll()
        poll.register(self.connection.fileno(), select.POLLIN)
        return not poll.poll(0)
