"""A Redis that is down costs one caller a moment, and the others nothing."""

import threading

import pytest

from core.redis import PAUSE, Breaker


class Watch:
    """A clock that stands still unless it is wound on."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def monotonic(self) -> float:
        return self.seconds


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Watch:
    watch = Watch()
    monkeypatch.setattr("core.redis.time", watch)
    return watch


class Down(Exception):
    pass


def fails() -> str:
    raise Down


def works() -> str:
    return "an answer"


def test_after_a_failure_nobody_asks_for_a_while(watch: Watch) -> None:
    breaker = Breaker()
    assert breaker.call(works, Down) == "an answer"
    assert breaker.call(fails, Down) is None
    watch.seconds += PAUSE - 0.001
    assert breaker.call(works, Down) is None
    watch.seconds += 0.001
    assert breaker.call(works, Down) == "an answer"
    assert breaker.call(works, Down) == "an answer"


def test_after_the_pause_one_tries_and_the_others_do_not_wait_for_it(watch: Watch) -> None:
    breaker, tries, go_on = Breaker(), threading.Event(), threading.Event()

    def tries_long() -> str:
        tries.set()
        go_on.wait(60)
        return "an answer"

    breaker.call(fails, Down)
    watch.seconds += PAUSE
    waits = threading.Thread(target=breaker.call, args=(tries_long, Down))
    waits.start()
    assert tries.wait(60)
    assert breaker.call(works, Down) is None
    go_on.set()
    waits.join()
    assert breaker.call(works, Down) == "an answer"
