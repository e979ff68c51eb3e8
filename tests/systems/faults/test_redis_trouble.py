"""Redis is emptied, frozen and killed while codes are created: no request waits, no event is lost."""

import os
import signal
from collections import Counter
from collections.abc import Callable
from random import Random

import pytest
import redis

from tests.flows.conftest import ShopClient
from tests.stack import Stack
from tests.systems.faults import load
from tests.systems.faults.hooks import Hook, events_by_payment
from tests.systems.faults.load import Load

pytestmark = pytest.mark.slow
# In steps of acknowledged codes, some 40 a second: longer than the 5 s that a worker waits for Redis.
FROZEN_CODES = 240
SLOWEST_SECONDS = 15.0


def empty(stack: Stack, running: Load) -> None:
    with redis.Redis.from_url(stack.env["REDIS_URL"]) as client:
        client.flushall()


def freeze(stack: Stack, running: Load) -> None:
    frozen = stack.kill("valkey", signal.SIGSTOP)
    try:
        running.wait_for_more(FROZEN_CODES)
    finally:
        os.kill(frozen, signal.SIGCONT)


def kill(stack: Stack, running: Load) -> None:
    stack.restart("valkey")


FAULTS: list[Callable[[Stack, Load], None]] = [empty, empty, empty, freeze, kill, kill]


def test_redis_failure_neither_slows_the_api_nor_loses_an_event(
    stack: Stack, shop_client: ShopClient, hook: Hook, chance: Random
) -> None:
    with load.steady(shop_client) as running:
        for fault in chance.sample(FAULTS, len(FAULTS)):
            running.wait_for_more(chance.randint(5, 40))
            fault(stack, running)
        running.wait_for_more(20)

    assert {response.status for response in running.answers} == {200}
    assert running.quantile(1) < SLOWEST_SECONDS
    shown = events_by_payment(shop_client)
    assert shown.keys() == running.payment_ids
    hook.wait_for(set(shown.values()), 60)
    hook.wait_for_success(len(shown))
    assert hook.delivered() == Counter(shown.values()), "no worker died, so nothing is delivered twice"
