"""Calls to a bank's API with an access token, which is cached until shortly before it expires."""

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from banks import credentials, http_client
from banks.http_client import NoResponse, NotSent, Response
from core.deadlines import Deadline

CONNECT_SECONDS, READ_SECONDS = 3.0, 5.0
TOTAL_SECONDS = 9.0  # callers of an adapter wait 10 s
# A token is not used in its last minute, because a request takes some seconds to arrive.
EXPIRY_MARGIN_SECONDS = 60.0
UNAUTHORIZED = 401


@dataclass(frozen=True, slots=True)
class AccessToken:
    text: str = field(repr=False)
    seconds: float  # its lifetime as the bank reports it


class _CacheEntry:
    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.text = ""
        self.expires_at = 0.0


class TokenCache:
    """One token for each key (URL, name and secret). Concurrent callers fetch it once."""

    def __init__(self) -> None:
        self._entries: dict[tuple[str, ...], _CacheEntry] = {}

    def get(self, key: tuple[str, ...], fetch: Callable[[], AccessToken], *, timeout: float) -> str:
        """The cached token, or a new one.

        Raises what `fetch` raises, and TimeoutError after waiting `timeout` seconds for another caller's
        fetch.
        """
        entry = self._entry(key)
        # Held during the call of the bank, so that many requests at once fetch one token. Each waits within
        # its own deadline, and another key has another lock.
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
        """Forget a token that the bank refused, unless a new one has replaced it."""
        entry = self._entry(key)
        with entry.lock:
            if entry.text == text:
                entry.expires_at = 0.0

    def _entry(self, key: tuple[str, ...]) -> _CacheEntry:
        return self._entries.setdefault(key, _CacheEntry())  # atomic: concurrent callers get one entry


_token_cache = TokenCache()


class AuthorizedSession(ABC):
    """Requests to one bank, which share one deadline. login: name and secret."""

    def __init__(self, bank: str, url: str, *login: str) -> None:
        self._bank, self._url, self._login, self._key = bank, url, login, (url, *login)
        self._deadline = Deadline.after(TOTAL_SECONDS)

    @abstractmethod
    def fetch_token(self) -> AccessToken:
        """Ask the bank for a token, by `request_without_token`. Raises CallFailed."""

    def request_without_token(self, method: str, path: str, **options: Any) -> Response:
        """Raises NotSent, NoResponse."""
        try:
            left = self._deadline.left()
        except TimeoutError:
            raise NotSent("timeout") from None
        return http_client.request(
            method,
            self._url + path,
            bank=self._bank,
            timeout=(min(CONNECT_SECONDS, left), min(READ_SECONDS, left)),
            ends_at=self._deadline,
            is_internal=credentials.is_loopback(self._url),
            **options,
        )

    def request(self, method: str, path: str, *, headers: Mapping[str, str], **options: Any) -> Response:
        """Send with a token, and once more with a new token after a 401. Raises NotSent, NoResponse."""
        response, token = self._request(method, path, headers, options)
        if response.status != UNAUTHORIZED:
            return response
        _token_cache.drop(self._key, token)
        return self._request(method, path, headers, options)[0]

    def _request(
        self, method: str, path: str, headers: Mapping[str, str], options: Mapping[str, Any]
    ) -> tuple[Response, str]:
        try:
            token = _token_cache.get(self._key, self.fetch_token, timeout=self._deadline.left())
        except TimeoutError:
            raise NotSent("timeout") from None
        except NoResponse as error:
            raise NotSent(error.cause) from None  # only the token was requested
        try:
            authorized = {**headers, "Authorization": f"Bearer {token}"}
            return self.request_without_token(method, path, headers=authorized, **options), token
        except NoResponse:
            # Some gateways refuse a token with an HTML page, which is not a readable answer.
            _token_cache.drop(self._key, token)
            raise


def parse_token(status: int, data: Mapping[str, Any], text: str, seconds: str) -> AccessToken:
    """Read the token from the fields with these names. Raises NoResponse if it is missing or malformed."""
    if status != 200:  # RFC 6749 lets a bank refuse a login with 400 too
        raise NoResponse("credentials" if status == 400 else http_client.cause_of_status(status))
    found, lifetime = data.get(text), data.get(seconds, 0)
    try:
        if isinstance(found, str) and found.isascii() and found.isprintable() and found:
            return AccessToken(found, float(lifetime))
    except (TypeError, ValueError, OverflowError):
        pass
    raise NoResponse()
