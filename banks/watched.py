"""HTTP connections of `requests` that end at a deadline: its own time-outs begin anew with each byte."""

import socket
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import Any, cast

from requests import PreparedRequest
from requests.adapters import HTTPAdapter
from urllib3 import HTTPConnectionPool
from urllib3.connection import HTTPConnection, HTTPSConnection

from core.deadlines import Deadline
from core.watchdog import Watchdog

_watchdog = Watchdog()
Watch = Callable[[socket.socket], Any]


class Connection(HTTPConnection):
    def __init__(self, watch: Watch, *args: Any, **how: Any) -> None:
        super().__init__(*args, **how)
        self._begin_watch = watch

    def connect(self) -> None:
        super().connect()
        self._begin_watch(self.sock)


class SecureConnection(Connection, HTTPSConnection):
    """The same with TLS."""


class Adapter(HTTPAdapter):
    """Watches its connections until the stack ends, whoever holds them by then."""

    def __init__(self, deadline: Deadline, stack: ExitStack) -> None:
        super().__init__()
        self._watch: Watch = lambda sock: stack.enter_context(_watchdog.over(sock, deadline))

    def get_connection_with_tls_context(
        self, request: PreparedRequest, *args: Any, **how: Any
    ) -> HTTPConnectionPool:
        pool = cast(HTTPConnectionPool, super().get_connection_with_tls_context(request, *args, **how))
        kind = SecureConnection if pool.scheme == "https" else Connection
        pool.ConnectionCls = partial(kind, self._watch)  # type: ignore[assignment]
        return pool
