"""A bank's API behind an access token, asked within a time that is bounded as a whole."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from banks import credentials, http_client
from banks.http_client import NoResponse, NotSent, Response
from banks.token_cache import AccessToken, TokenCache
from core.deadlines import Deadline

CONNECT_SECONDS, READ_SECONDS = 3.0, 5.0
TOTAL_SECONDS = 9.0  # whoever waits for an adapter gives it ten
UNAUTHORIZED = 401
_token_cache = TokenCache()


@dataclass(frozen=True, slots=True)
class ApiClient:
    """Where the bank is asked, by whom, and how a token is fetched there."""

    url: str
    name: str
    secret: str = field(repr=False)
    fetch: Callable[["AuthorizedSession"], AccessToken]


class AuthorizedSession:
    """Some questions to one bank, which share the time that they may take."""

    def __init__(self, api: ApiClient) -> None:
        self._api = api
        self._key = (api.url, api.name, api.secret)
        self._deadline = Deadline.after(TOTAL_SECONDS)

    def request_without_token(self, method: str, path: str, **options: Any) -> Response:
        """Ask without a token. Raises NotSent, NoResponse."""
        try:
            left = self._deadline.left()
        except TimeoutError:
            raise NotSent() from None
        return http_client.request(
            method,
            self._api.url + path,
            timeout=(min(CONNECT_SECONDS, left), min(READ_SECONDS, left)),
            ends_at=self._deadline,
            is_internal=credentials.is_loopback(self._api.url),
            **options,
        )

    def request(self, method: str, path: str, *, headers: Mapping[str, str], **options: Any) -> Response:
        """Ask with a token, and with a fresh one if the bank refuses it. Raises NotSent, NoResponse."""
        response, token = self._request(method, path, headers, options)
        if response.status != UNAUTHORIZED:
            return response
        _token_cache.drop(self._key, token)
        return self._request(method, path, headers, options)[0]

    def _request(
        self, method: str, path: str, headers: Mapping[str, str], options: Mapping[str, Any]
    ) -> tuple[Response, str]:
        token = self._token()
        try:
            sent = {**headers, "Authorization": f"Bearer {token}"}
            return self.request_without_token(method, path, headers=sent, **options), token
        except NoResponse:
            # Some gateways refuse a token with a page for people, which is no answer to us.
            _token_cache.drop(self._key, token)
            raise

    def _token(self) -> str:
        try:
            return _token_cache.get(self._key, lambda: self._api.fetch(self), timeout=self._deadline.left())
        except (NoResponse, TimeoutError):
            raise NotSent() from None  # the question itself never left


def parse_token(data: Mapping[str, Any], text: str, seconds: str) -> AccessToken:
    """The token in an answer, by the names of its fields. Raises NoResponse where there is none."""
    found, lifetime = data.get(text), data.get(seconds, 0)
    try:
        if isinstance(found, str) and found.isascii() and found.isprintable() and found:
            return AccessToken(found, float(lifetime))
    except (TypeError, ValueError, OverflowError):
        pass
    raise NoResponse()
