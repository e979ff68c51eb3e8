"""Bulkheads: how many callers of this process may do one kind of work at once."""

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager


class BulkheadFull(Exception):
    """All slots are taken, or all slots that one key may hold."""


class Bulkhead:
    """Counts the slots that are taken, in total and for each key, such as a merchant."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._taken: Counter[str] = Counter()

    @contextmanager
    def hold(self, key: str, *, total: int, share: int, wait_seconds: float = 0.0) -> Iterator[None]:
        """Hold one of `total` slots, `share` of them for a key. Raises BulkheadFull after `wait_seconds`."""
        with self._changed:
            if not self._changed.wait_for(
                lambda: self._taken.total() < total and self._taken[key] < share, wait_seconds
            ):
                raise BulkheadFull(key)
            self._taken[key] += 1
        try:
            yield
        finally:
            with self._changed:
                self._taken[key] -= 1
                self._taken += Counter()  # forgets keys that hold no slot
                self._changed.notify_all()

    @property
    def taken(self) -> int:
        """How many slots are taken now."""
        with self._changed:
            return self._taken.total()
