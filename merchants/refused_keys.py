"""How many requests without a valid key one address may send, before any of them reaches the database.

Redis counts the refusals, and each process remembers which addresses have used up theirs: so a request with
a good key costs no round trip. A merchant may share an address with somebody who guesses, so keys that were
good before pass: each process remembers those that it has seen, Redis those that any process has seen.
Without Redis nobody is limited.
"""

import time
from typing import Any

from django.conf import settings

from core import rates, redis
from core.rates import Rate
from merchants.errors import TooManyRefusedKeys

MOST_REMEMBERED = 10_000  # addresses, and keys
GOOD_SECONDS = 24 * 3600  # how long Redis remembers that a key was good


class RefusedKeys:
    def __init__(self) -> None:
        self._blocked_until: dict[str, float] = {}
        self._accepted: dict[bytes, None] = {}

    def forget(self) -> None:
        self._blocked_until.clear()
        self._accepted.clear()

    def check(self, network: str, digest: bytes | None) -> None:
        """Raises TooManyRefusedKeys, unless the key was good when it came last."""
        until = self._blocked_until.get(network)
        if until is None or digest in self._accepted:
            return
        left = until - time.monotonic()
        if left <= 0:
            self._blocked_until.pop(network, None)
        elif not _was_good(digest):
            raise _refusal(left)

    def accept(self, digest: bytes) -> None:
        """Remember a good key in this process."""
        if digest not in self._accepted:
            _make_room(self._accepted)
            self._accepted[digest] = None

    def share(self, digest: bytes) -> None:
        """Tell the other processes of a good key. It costs a round trip: not for each request."""
        redis.attempt(lambda client: client.set(_name(digest), 1, ex=GOOD_SECONDS))

    def count(self, network: str, digest: bytes | None) -> None:
        """Count a refused key. Raises TooManyRefusedKeys if it was one too many."""
        if digest is not None and (digest in self._accepted or network in self._blocked_until):
            self._accepted.pop(digest, None)
            redis.attempt(lambda client: client.delete(_name(digest)))
        if settings.REFUSED_KEYS_PER_MINUTE == 0:
            return
        per_second = settings.REFUSED_KEYS_PER_MINUTE / 60
        room = rates.take(f"refused:{network}", Rate(per_second, settings.REFUSED_KEYS_PER_MINUTE))
        if room is None or room.remaining > 0:
            return
        wait = 1 / per_second if room.allowed else room.wait_ms / 1000
        _make_room(self._blocked_until)
        self._blocked_until[network] = time.monotonic() + wait
        if not room.allowed:
            raise _refusal(wait)


def _was_good(digest: bytes | None) -> bool:
    return digest is not None and bool(redis.attempt(lambda client: client.exists(_name(digest))))


def _name(digest: bytes) -> str:
    return f"good_key:{digest.hex()}"


def _refusal(seconds: float) -> TooManyRefusedKeys:
    wait = max(1, -(-int(seconds * 1000) // 1000))
    return TooManyRefusedKeys(TooManyRefusedKeys.message.format(retry_after=wait), retry_after=wait)


def _make_room(remembered: dict[Any, Any]) -> None:
    """Strangers fill this memory: forget all of it before it grows large."""
    if len(remembered) >= MOST_REMEMBERED:
        remembered.clear()


refused_keys = RefusedKeys()
