"""Calls to Redis, which may be down: short time-outs, and a pause of one second after a failure.

Redis holds rate limits and wake-ups only; its data may be lost. Without the pause a silent Redis would delay
every request.
"""

import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

from django.conf import settings
from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError, RedisError
from redis.retry import Retry

from core.work.redis_urls import SentinelUrl, is_sentinel

T = TypeVar("T")
CALL_TIMEOUT_SECONDS = 0.25  # seconds a single call may take
PAUSE_SECONDS = 1.0  # seconds without calls after a failure


class RedisBreaker:
    """A circuit breaker: runs calls, or returns None while Redis is considered down."""

    def __init__(self, pause: float = PAUSE_SECONDS) -> None:
        self._pause = pause
        self._closed_until: float | None = None
        self._lock = threading.Lock()

    def call(self, action: Callable[[], T], *failures: type[Exception]) -> T | None:
        if self._closed_until is not None and not self._is_next_to_try():
            return None
        try:
            result = action()
        except failures:
            self._closed_until = time.monotonic() + self._pause
            return None
        self._closed_until = None
        return result

    def _is_next_to_try(self) -> bool:
        """Whether this caller tries again after the pause. The others do not wait for its result."""
        with self._lock:
            is_over = self._closed_until is None or time.monotonic() >= self._closed_until
            if is_over:
                self._closed_until = time.monotonic() + self._pause
            return is_over


class _ThreadClient(threading.local):
    """The client of one thread. Its own connection saves the lock of a pool in each call."""

    url = ""
    client: Redis


_thread_client = _ThreadClient()


def client() -> Redis:
    """The client of this thread. Raises RedisError, since it connects."""
    if not settings.REDIS_URL:  # `thaiqr-server doctor` says so
        raise RedisError("REDIS_URL is not set")
    if _thread_client.url != settings.REDIS_URL:
        _thread_client.client = connect(settings.REDIS_URL, CALL_TIMEOUT_SECONDS)
        _thread_client.url = settings.REDIS_URL
    return _thread_client.client


def connect(url: str, seconds: float) -> Redis:
    """A client with one connection. seconds: for connecting, and for a call. Raises RedisError."""
    options: dict[str, Any] = {
        "socket_timeout": seconds,
        "socket_connect_timeout": seconds,
        # Connect again if Redis closed the connection. Do not repeat a call after a time-out.
        "retry": Retry(NoBackoff(), 1, supported_errors=(ConnectionError,)),
    }
    if is_sentinel(url):
        pool = SentinelUrl.parse(url).pool(seconds, **options)
        return Redis(connection_pool=pool, single_connection_client=True)
    return Redis.from_url(url, single_connection_client=True, **options)


_breaker = RedisBreaker()


def run(*command: Any) -> Any:
    """Send one command by this thread's connection; return its reply. Raises RedisError, OSError.

    The client's own methods take twice the time for their metrics, locks and conversions.
    """
    connection: Any = client().connection
    try:
        connection.send_command(*command)
        return connection.read_response()
    except ConnectionError:
        # Redis closed the connection. Not for a time-out, which may have run the command.
        connection.send_command(*command)
        return connection.read_response()


def try_call(action: Callable[[Redis], T]) -> T | None:
    """The result of `action(client)`, or None if Redis does not answer."""
    return _breaker.call(lambda: _call(action), RedisError, OSError)


def _call(action: Callable[[Redis], T]) -> T:
    try:
        return action(client())
    except (RedisError, OSError):
        # The next call connects anew and asks Sentinel for the primary. A connection that redis-py makes for
        # Sentinel goes on with the old address. After a time-out it would read the reply to an earlier call.
        _thread_client.url = ""
        raise
