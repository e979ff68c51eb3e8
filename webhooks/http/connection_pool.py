"""Idle connections for later posts: few per merchant, for at most a minute. Used by the event loop only."""

import time
from collections import deque

from webhooks.http.connections import Connection, Route

MAX_IDLE = 256
# The connections of one merchant cannot push out those of others.
MAX_IDLE_PER_MERCHANT = 32
MAX_IDLE_SECONDS = 60.0


class ConnectionPool:
    """Idle connections. A post takes one of its own merchant, to the same origin and a checked address.

    It needs no lock: nothing here awaits, so no other task of the loop runs in between.
    """

    def __init__(self) -> None:
        self._oldest_first: deque[Connection] = deque()

    def take(self, route: Route) -> Connection | None:
        """Take an open connection to the same origin whose peer is among the checked addresses."""
        self._drop_stale()
        for connection in list(reversed(self._oldest_first)):
            if _matches(connection, route):
                self._oldest_first.remove(connection)
                if connection.is_open_and_quiet:
                    return connection
                connection.close()
        return None

    def put(self, connection: Connection) -> None:
        """Keep a connection whose last response was read completely."""
        connection.idle_since = time.monotonic()
        self._oldest_first.append(connection)
        merchant_id = connection.route.merchant_id
        own = [each for each in self._oldest_first if each.route.merchant_id == merchant_id]
        if len(own) > MAX_IDLE_PER_MERCHANT:
            self._oldest_first.remove(own[0])
            own[0].close()
        self._drop_stale()

    def _drop_stale(self) -> None:
        since = time.monotonic() - MAX_IDLE_SECONDS
        idle = self._oldest_first
        while idle and (len(idle) > MAX_IDLE or idle[0].idle_since < since):
            idle.popleft().close()


def _matches(connection: Connection, route: Route) -> bool:
    idle = connection.route
    return (
        idle.merchant_id == route.merchant_id
        and idle.target.origin == route.target.origin
        and idle.tls is route.tls
        and connection.peer in route.addresses
    )
