"""What staff must decide about, for the list of exceptions in `reconciliation`, which is above."""

from collections.abc import Callable
from typing import Any

LISTENERS: list[Callable[[Any], None]] = []


def report(subject: Any) -> None:
    """List a refund that came back, or a contradiction, in the commit that stores it."""
    for listener in LISTENERS:
        listener(subject)
