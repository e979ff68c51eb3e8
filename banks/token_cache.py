"""Access tokens of banks, kept in the process until shortly before they expire."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

# An answer is on its way for some seconds: a token is not used in its last minute.
EXPIRY_MARGIN_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class AccessToken:
    text: str = field(repr=False)
    seconds: float  # how long the bank says that it lasts


class _CacheEntry:
    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.text = ""
        self.expires_at = 0.0


class TokenCache:
    """One token for each key (such as address, name and secret). Those who ask at once fetch it once."""

    def __init__(self) -> None:
        self._entries: dict[tuple[str, ...], _CacheEntry] = {}

    def get(self, key: tuple[str, ...], fetch: Callable[[], AccessToken], *, timeout: float) -> str:
        """The token that is kept, or a new one. Raises what `fetch` raises, and TimeoutError after `timeout`
        seconds behind others who fetch it: behind a bank that hangs they would queue up."""
        entry = self._entry(key)
        if not entry.lock.acquire(timeout=max(0.0, timeout)):
            raise TimeoutError
        try:
            if time.monotonic() >= entry.expires_at:
                token = fetch()
                entry.text = token.text
                entry.expires_at = time.monotonic() + token.seconds - EXPIRY_MARGIN_SECONDS
            return entry.text
        finally:
            entry.lock.release()

    def drop(self, key: tuple[str, ...], text: str) -> None:
        """Forget a token that the bank refused, unless another has taken its place."""
        entry = self._entry(key)
        with entry.lock:
            if entry.text == text:
                entry.expires_at = 0.0

    def _entry(self, key: tuple[str, ...]) -> _CacheEntry:
        return self._entries.setdefault(
            key, _CacheEntry()
        )  # one step: of two who come at once, one place stays
