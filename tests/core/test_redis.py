"""A Redis that is down costs one caller a moment, and the others nothing."""

import threading

from core.redis import Breaker
from tests.stack import wait_until

PAUSE = 0.05


class Down(Exception):
    pass


def fails() -> str:
    raise Down


def works() -> str:
    return "an answer"


def test_after_a_failure_nobody_asks_for_a_while() -> None:
    breaker = Breaker(PAUSE)
    assert breaker.call(works, Down) == "an answer"
    assert breaker.call(fails, Down) is None
    assert breaker.call(works, Down) is None
    wait_until(lambda: breaker.call(works, Down) == "an answer", 5)
    assert breaker.call(works, Down) == "an answer"


def test_after_the_pause_one_tries_and_the_others_do_not_wait_for_it() -> None:
    breaker, tries, go_on = Breaker(PAUSE), threading.Event(), threading.Event()

    def tries_long() -> str:
        tries.set()
        go_on.wait(10)
        return "an answer"

    breaker.call(fails, Down)
    waits = threading.Timer(PAUSE, lambda: breaker.call(tries_long, Down))
    waits.start()
    assert tries.wait(5)
    assert breaker.call(works, Down) is None
    go_on.set()
    waits.join()
    assert breaker.call(works, Down) == "an answer"
