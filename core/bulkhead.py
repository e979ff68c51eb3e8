"""Bulkheads: how many callers of this process may do one kind of work at once. Nobody waits for a slot."""

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager


class BulkheadFull(Exception):
    """All slots of this kind are taken, or all that one party may have."""


class Bulkhead:
    """Counts the slots that are taken, in total and for each key, such as a merchant."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._taken: Counter[str] = Counter()

    @contextmanager
    def hold(self, key: str, *, total: int, share: int) -> Iterator[None]:
        """Hold a slot: at most `total` at once, `share` of them for one key. Raises NoFreeSlot."""
        with self._lock:
            if self._taken.total() >= total or self._taken[key] >= share:
                raise BulkheadFull(key)
            self._taken[key] += 1
        try:
            yield
        finally:
            with self._lock:
                self._taken[key] -= 1
                self._taken += Counter()  # forgets keys that hold no slot

    @property
    def taken(self) -> int:
        """How many slots are taken now."""
        with self._lock:
            return self._taken.total()
