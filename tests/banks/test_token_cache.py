"""Access tokens of banks: fetched once by concurrent callers, cached, and dropped when refused."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from banks.oauth import AccessToken, TokenCache

KEY = ("https://bank.example", "name", "secret")


class Fetching:
    """Hands out token-1, token-2 and so on."""

    def __init__(self, seconds: float = 1800.0) -> None:
        self.count = 0
        self._seconds = seconds

    def __call__(self) -> AccessToken:
        self.count += 1
        return AccessToken(f"token-{self.count}", self._seconds)


def get(tokens: TokenCache, fetch: Fetching, key: tuple[str, ...] = KEY) -> str:
    return tokens.get(key, fetch, timeout=5.0)


def test_access_token_is_fetched_once_and_reused() -> None:
    tokens, fetch = TokenCache(), Fetching()
    assert [get(tokens, fetch) for _ in range(3)] == ["token-1"] * 3


@pytest.mark.slow
def test_concurrent_callers_share_one_access_token() -> None:
    tokens, line, begun = TokenCache(), threading.Barrier(8), []

    def fetch() -> AccessToken:
        begun.append(threading.Event())
        begun[0].wait(0.1) if len(begun) == 1 else begun[0].set()  # a second fetch would end the wait
        return AccessToken(f"token-{len(begun)}", 1800.0)

    def come(_: int) -> str:
        line.wait(60)
        return tokens.get(KEY, fetch, timeout=5.0)

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(come, range(8))) == ["token-1"] * 8
    assert len(begun) == 1


def test_access_token_is_renewed_in_the_last_minute_of_validity() -> None:
    tokens, fetch = TokenCache(), Fetching(seconds=60.0)
    assert [get(tokens, fetch) for _ in range(2)] == ["token-1", "token-2"]


def test_access_tokens_are_cached_per_name_and_secret() -> None:
    tokens, fetch = TokenCache(), Fetching()
    assert get(tokens, fetch) == "token-1"
    assert get(tokens, fetch, (*KEY[:2], "a renewed secret")) == "token-2"
    assert get(tokens, fetch) == "token-1"


def test_refused_access_token_is_dropped_unless_renewed() -> None:
    tokens, fetch = TokenCache(), Fetching()
    old = get(tokens, fetch)
    for _ in range(2):
        tokens.drop(KEY, old)
        assert get(tokens, fetch) == "token-2"


def test_token_fetch_is_retried_after_a_failure() -> None:
    def fail() -> AccessToken:
        raise ConnectionError

    tokens = TokenCache()
    with pytest.raises(ConnectionError):
        tokens.get(KEY, fail, timeout=5.0)
    assert get(tokens, Fetching()) == "token-1"


@pytest.mark.slow
def test_wait_for_hanging_token_fetch_times_out() -> None:
    tokens, has_begun, may_end = TokenCache(), threading.Event(), threading.Event()

    def hang() -> AccessToken:
        has_begun.set()
        assert may_end.wait(60)
        return AccessToken("late", 1800.0)

    def come_later() -> str:
        assert has_begun.wait(60)
        try:
            with pytest.raises(TimeoutError):
                tokens.get(KEY, Fetching(), timeout=0.05)
        finally:
            may_end.set()
        return get(tokens, Fetching())

    with ThreadPoolExecutor(2) as pool:
        first, second = pool.submit(tokens.get, KEY, hang, timeout=5.0), pool.submit(come_later)
        assert (first.result(), second.result()) == ("late", "late")
