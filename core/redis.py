"""Redis as a convenience that may be gone: short time-outs, and a pause after a failure.

Redis counts requests and rings bells; nothing that matters lives there. A Redis that hangs must not hang the
API, so after a failure it is left alone for a moment instead of being asked by every request.
"""

import threading
import time
from collections.abc import Callable
from typing import TypeVar

from django.conf import settings
from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.retry import Retry

T = TypeVar("T")
PATIENCE = 0.25  # seconds a single call may take
PAUSE = 1.0  # seconds without calls after a failure


class Breaker:
    """Calls through, or answers None while the other side is considered down."""

    def __init__(self, pause: float = PAUSE) -> None:
        self._pause = pause
        self._closed_until = 0.0
        self._lock = threading.Lock()

    def call(self, action: Callable[[], T], *failures: type[Exception]) -> T | None:
        if time.monotonic() < self._closed_until:
            return None
        try:
            return action()
        except failures:
            with self._lock:
                self._closed_until = time.monotonic() + self._pause
            return None


class _Own(threading.local):
    """What one thread keeps: a connection of its own saves the pool's lock and bookkeeping at each call."""

    url = ""
    client: Redis


_own = _Own()


def client() -> Redis:
    """The client of this thread. Raises RedisError, since it connects."""
    if _own.url != settings.REDIS_URL:
        _own.client = _connect(settings.REDIS_URL)
        _own.url = settings.REDIS_URL
    return _own.client


def _connect(url: str) -> Redis:
    return Redis.from_url(
        url,
        single_connection_client=True,
        socket_timeout=PATIENCE,
        socket_connect_timeout=PATIENCE,
        retry=Retry(NoBackoff(), 1),
    )


_breaker = Breaker()


def attempt(action: Callable[[Redis], T]) -> T | None:
    """The result of `action(client)`, or None when Redis cannot say."""
    return _breaker.call(lambda: action(client()), RedisError, OSError)
