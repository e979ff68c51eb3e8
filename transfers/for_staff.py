"""Who lists what staff must decide about: `reconciliation`, which is above and connects itself."""

from collections.abc import Callable
from typing import Any

_connected: list[Callable[[Any], None]] = []


def connect(listener: Callable[[Any], None]) -> None:
    _connected[:] = [listener]


def report(subject: Any) -> None:
    """List a refund that came back, or a contradiction, in the commit that stores it."""
    for listener in _connected:
        listener(subject)
