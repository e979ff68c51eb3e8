"""A value that this process computes once a second at most, because strangers may ask for it."""

import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

KEPT_SECONDS = 1.0
Value = TypeVar("Value")


class KeptValue(Generic[Value]):
    """One thread computes, others wait for it, and all get the same value for a second."""

    def __init__(self, compute: Callable[[], Value]) -> None:
        self._compute = compute
        self._lock = threading.Lock()
        self._computed: tuple[float, Value] | None = None

    def get(self) -> Value:
        with self._lock:
            if self._computed is None or time.monotonic() - self._computed[0] >= KEPT_SECONDS:
                value = self._compute()
                self._computed = time.monotonic(), value
            return self._computed[1]
