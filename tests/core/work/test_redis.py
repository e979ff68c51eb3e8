"""If Redis is down, one caller waits briefly and the others do not wait."""

import threading

import pytest
from pytest_django import Settings
from redis import RedisError

from core.work import redis
from core.work.redis import PAUSE_SECONDS, RedisBreaker


class Watch:
    """A clock that stands still unless it is wound on."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def monotonic(self) -> float:
        return self.seconds


@pytest.fixture
def fake_clock(monkeypatch: pytest.MonkeyPatch) -> Watch:
    clock = Watch()
    monkeypatch.setattr("core.work.redis.time", clock)
    return clock


class Down(Exception):
    pass


def fails() -> str:
    raise Down


def works() -> str:
    return "an answer"


def test_breaker_stays_open_after_failure(fake_clock: Watch) -> None:
    breaker = RedisBreaker()
    assert breaker.call(works, Down) == "an answer"
    assert breaker.call(fails, Down) is None
    fake_clock.seconds += PAUSE_SECONDS - 0.001
    assert breaker.call(works, Down) is None
    fake_clock.seconds += 0.001
    assert breaker.call(works, Down) == "an answer"
    assert breaker.call(works, Down) == "an answer"


def test_breaker_lets_one_call_try_after_pause(fake_clock: Watch) -> None:
    breaker, tries, go_on = RedisBreaker(), threading.Event(), threading.Event()

    def tries_long() -> str:
        tries.set()
        go_on.wait(60)
        return "an answer"

    breaker.call(fails, Down)
    fake_clock.seconds += PAUSE_SECONDS
    waits = threading.Thread(target=breaker.call, args=(tries_long, Down))
    waits.start()
    assert tries.wait(60)
    assert breaker.call(works, Down) is None
    go_on.set()
    waits.join()
    assert breaker.call(works, Down) == "an answer"


def test_missing_setting_is_an_error_of_redis(settings: Settings) -> None:
    """So `thaiqr-server doctor` goes on, and names the setting."""
    settings.REDIS_URL = ""
    with pytest.raises(RedisError, match="REDIS_URL is not set"):
        redis.client()
