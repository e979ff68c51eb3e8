"""Instants by which something must have happened."""

import time
from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Deadline:
    """An instant of the monotonic clock."""

    at: float

    @classmethod
    def after(cls, seconds: float) -> "Deadline":
        """The instant that many seconds from now."""
        return cls(time.monotonic() + seconds)

    @property
    def is_past(self) -> bool:
        return time.monotonic() >= self.at

    def left(self) -> float:
        """Seconds until then, more than zero. Raises TimeoutError afterwards."""
        seconds = self.at - time.monotonic()
        if seconds <= 0:
            raise TimeoutError
        return seconds
