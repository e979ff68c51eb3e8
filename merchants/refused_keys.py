"""A limit for requests without a valid key from one address. It saves queries to the database.

Redis counts refused keys, and each process remembers the blocked addresses, so a request with a valid key
needs no round trip. A merchant may share an address with somebody who guesses keys. So keys that were valid
before pass: each process remembers the ones that it has seen, and Redis those of all processes. Without Redis
nothing is limited.
"""

import time
from typing import Any

from django.conf import settings

from core.errors import RateLimitError
from core.http import rate_limits
from core.http.rate_limits import RateLimit
from core.work import redis
from merchants.errors import TooManyRefusedKeys

MAX_REMEMBERED = 10_000  # addresses, and keys
VALID_KEY_SECONDS = 24 * 3600  # how long Redis remembers a valid key


class RefusedKeyLimiter:
    def __init__(self) -> None:
        self._blocked_until: dict[str, float] = {}
        self._valid_keys: dict[bytes, None] = {}

    def forget(self) -> None:
        self._blocked_until.clear()
        self._valid_keys.clear()

    def check(self, network: str, digest: bytes | None) -> None:
        """Raises TooManyRefusedKeys if the address is blocked, unless the key was valid before."""
        until = self._blocked_until.get(network)
        if until is None or digest in self._valid_keys:
            return
        left = until - time.monotonic()
        if left <= 0:
            self._blocked_until.pop(network, None)
        elif digest is None or not redis.try_call(lambda client: client.exists(_redis_key(digest))):
            raise _too_many(left)

    def remember_valid(self, digest: bytes) -> None:
        """Remember a valid key in this process."""
        if digest not in self._valid_keys:
            _make_room(self._valid_keys)
            self._valid_keys[digest] = None

    def share_valid(self, digest: bytes) -> None:
        """Remember a valid key in Redis, for the other processes. It costs a round trip."""
        redis.try_call(lambda client: client.set(_redis_key(digest), 1, ex=VALID_KEY_SECONDS))

    def count(self, network: str, digest: bytes | None) -> None:
        """Count a refused key. Raises TooManyRefusedKeys above the limit."""
        if digest is not None and (digest in self._valid_keys or network in self._blocked_until):
            self._valid_keys.pop(digest, None)
            redis.try_call(lambda client: client.delete(_redis_key(digest)))
        if settings.REFUSED_KEYS_PER_MINUTE == 0:
            return
        per_second = settings.REFUSED_KEYS_PER_MINUTE / 60
        room = rate_limits.consume(
            f"refused:{network}", RateLimit(per_second, settings.REFUSED_KEYS_PER_MINUTE)
        )
        if room is None or room.remaining > 0:
            return
        wait = 1 / per_second if room.allowed else room.wait_ms / 1000
        _make_room(self._blocked_until)
        self._blocked_until[network] = time.monotonic() + wait
        if not room.allowed:
            raise _too_many(wait)


def _redis_key(digest: bytes) -> str:
    return f"good_key:{digest.hex()}"


def _too_many(seconds: float) -> RateLimitError:
    return TooManyRefusedKeys(retry_after=max(1, -(-int(seconds * 1000) // 1000)))


def _make_room(remembered: dict[Any, Any]) -> None:
    """Clear the memory before unknown clients make it large."""
    if len(remembered) >= MAX_REMEMBERED:
        remembered.clear()


refused_keys = RefusedKeyLimiter()
