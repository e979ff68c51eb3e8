"""Access tokens of banks, kept in the process until shortly before they expire."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

# An answer is on its way for some seconds: a token is not used in its last minute.
EARLY_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Token:
    text: str = field(repr=False)
    seconds: float  # how long the bank says that it lasts


class _Place:
    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.text = ""
        self.until = 0.0


class Tokens:
    """One token for each key (such as address, name and secret). Those who ask at once fetch it once."""

    def __init__(self) -> None:
        self._places: dict[tuple[str, ...], _Place] = {}

    def get(self, key: tuple[str, ...], fetch: Callable[[], Token], *, patience: float) -> str:
        """The token that is kept, or a new one. Raises what `fetch` raises, and TimeoutError after `patience`
        seconds behind others who fetch it: behind a bank that hangs they would queue up."""
        place = self._place(key)
        if not place.lock.acquire(timeout=max(0.0, patience)):
            raise TimeoutError
        try:
            if time.monotonic() >= place.until:
                token = fetch()
                place.text = token.text
                place.until = time.monotonic() + token.seconds - EARLY_SECONDS
            return place.text
        finally:
            place.lock.release()

    def drop(self, key: tuple[str, ...], text: str) -> None:
        """Forget a token that the bank refused, unless another has taken its place."""
        place = self._place(key)
        with place.lock:
            if place.text == text:
                place.until = 0.0

    def _place(self, key: tuple[str, ...]) -> _Place:
        return self._places.setdefault(key, _Place())  # one step: of two who come at once, one place stays
