"""Password hashing in one thread of a process, with low priority.

A hash needs half a second of processor time by design. Without a limit, a few clients that guess passwords
would hold all web threads, and payments would wait.
"""

import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress

from django.contrib.auth.hashers import PBKDF2PasswordHasher

# The scheduler gives such a thread about a tenth of the time of a thread that serves a payment.
NICENESS = 10


class HashingBusyError(Exception):
    """Another thread of this process hashes a password. Try again shortly."""


def _yield_to_others() -> None:
    """Lower the priority of this thread."""
    with suppress(OSError, AttributeError):  # only Linux has one for a single thread
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)


# Reentrant: a login verifies a hash and may store a new one while it holds the slot.
_slot = threading.RLock()
_hashing = ThreadPoolExecutor(1, "password-hashing", initializer=_yield_to_others)


@contextmanager
def hashing_slot(wait_seconds: float = 0.0) -> Iterator[None]:
    """Hold the only hashing slot of this process. Raises HashingBusyError if it stays taken."""
    if not _slot.acquire(timeout=wait_seconds):
        raise HashingBusyError
    try:
        yield
    finally:
        _slot.release()


class OneAtATimeHasher(PBKDF2PasswordHasher):
    """Django's default hash, one at a time."""

    def encode(self, password: str, salt: str, iterations: int | None = None) -> str:
        """Raises HashingBusyError at once if another thread hashes."""
        with hashing_slot():
            return _hashing.submit(super().encode, password, salt, iterations).result()
