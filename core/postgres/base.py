"""Django's PostgreSQL backend, except for what the hot paths would wait for.

The name of the module and of the class are Django's interface for the ENGINE setting.
"""

import select
from typing import Any

import psycopg
from django.db.backends.postgresql import base
from psycopg.adapt import AdaptersMap
from psycopg.pq import Format

# The driver's own reader of instants, written in C. Django puts its time zone on each value in Python, which
# changes nothing here, because the time zone of each session is UTC (SESSION_PARAMETERS in the settings).
INSTANT = psycopg.adapters.get_loader(base.TIMESTAMPTZ_OID, Format.TEXT)


class DatabaseWrapper(base.DatabaseWrapper):
    _reusable_cursor: Any = None
    _cursor_owner: Any = None

    def reusable_cursor(self) -> Any:
        """A cursor for statements whose result is read before the next one runs.

        Making a cursor for each would cost two thirds of what a short statement costs.
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
        """Whether the server has left the connection open, without asking it: a question costs a round trip.

        A server that ends a session says so and hangs up, and either can be read here, where nobody waits for
        an answer. One that vanished without a word is noticed as late as by a question, by the time-outs.
        """
        if self.connection is None or self.connection.closed:
            return False
        poll = select.poll()
        poll.register(self.connection.fileno(), select.POLLIN)
        return not poll.poll(0)
