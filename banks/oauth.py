"""A bank's API behind an access token, asked within a time that is bounded as a whole."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from banks import exchange, needs
from banks.exchange import Answer, NoAnswer, NotSent
from banks.tokens import Token, Tokens
from core.deadlines import Deadline

CONNECT_SECONDS, READ_SECONDS = 3.0, 5.0
ALL_SECONDS = 9.0  # whoever waits for an adapter gives it ten
REFUSED_TOKEN = 401
_tokens = Tokens()


@dataclass(frozen=True, slots=True)
class Api:
    """Where the bank is asked, by whom, and how a token is fetched there."""

    url: str
    name: str
    secret: str = field(repr=False)
    fetch: Callable[["Errand"], Token]


class Errand:
    """Some questions to one bank, which share the time that they may take."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._key = (api.url, api.name, api.secret)
        self._until = Deadline.after(ALL_SECONDS)

    def call(self, method: str, path: str, **how: Any) -> Answer:
        """Ask without a token. Raises NotSent, NoAnswer."""
        try:
            left = self._until.left()
        except TimeoutError:
            raise NotSent() from None
        return exchange.ask(
            method,
            self._api.url + path,
            timeout=(min(CONNECT_SECONDS, left), min(READ_SECONDS, left)),
            until=self._until,
            is_neighbour=needs.is_loopback(self._api.url),
            **how,
        )

    def ask(self, method: str, path: str, *, headers: Mapping[str, str], **how: Any) -> Answer:
        """Ask with a token, and with a fresh one if the bank refuses it. Raises NotSent, NoAnswer."""
        answer, token = self._ask(method, path, headers, how)
        if answer.status != REFUSED_TOKEN:
            return answer
        _tokens.drop(self._key, token)
        return self._ask(method, path, headers, how)[0]

    def _ask(
        self, method: str, path: str, headers: Mapping[str, str], how: Mapping[str, Any]
    ) -> tuple[Answer, str]:
        token = self._token()
        try:
            sent = {**headers, "Authorization": f"Bearer {token}"}
            return self.call(method, path, headers=sent, **how), token
        except NoAnswer:
            # Some gateways refuse a token with a page for people, which is no answer to us.
            _tokens.drop(self._key, token)
            raise

    def _token(self) -> str:
        try:
            return _tokens.get(self._key, lambda: self._api.fetch(self), patience=self._until.left())
        except (NoAnswer, TimeoutError):
            raise NotSent() from None  # the question itself never left


def token(told: Mapping[str, Any], text: str, seconds: str) -> Token:
    """The token in an answer, by the names of its fields. Raises NoAnswer where there is none."""
    found, lasts = told.get(text), told.get(seconds, 0)
    try:
        if isinstance(found, str) and found.isascii() and found.isprintable() and found:
            return Token(found, float(lasts))
    except (TypeError, ValueError, OverflowError):
        pass
    raise NoAnswer()
