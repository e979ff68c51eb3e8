"""Sentinel makes a replica the primary: limits, wake-ups and tasks go on by themselves, nothing is lost."""

from collections.abc import Iterator

import pytest
import requests

from config.deployment import redis_server
from config.deployment.findings import Level
from tests import sentinels
from tests.flows.conftest import ShopClient
from tests.sentinels import Sentinels
from tests.stack import Stack, wait_until
from tests.systems.brokers.lives import Lives, wait_for_tasks
from tests.webhook_receiver import Receiver

pytestmark = pytest.mark.slow
PATIENCE = 120.0


@pytest.fixture(scope="module")
def valkeys(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sentinels]:
    with sentinels.running(tmp_path_factory.mktemp("sentinels")) as found:
        yield found


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory, valkeys: Sentinels) -> Iterator[Stack]:
    folder = tmp_path_factory.mktemp("watched") / "data"
    with Stack.on_shared_server(folder, REDIS_URL=valkeys.url, RATE_LIMIT="10000") as running:
        yield running


def is_redis_up(stack: Stack) -> bool:
    """Whether web reaches Redis, by which it limits requests."""
    return "thaiqr_redis_up 1.0" in requests.get(f"{stack.base_url}/metrics", timeout=60).text


def sentinel_level(valkeys: Sentinels) -> Level:
    (found,) = redis_server.sentinel_findings(valkeys.url)
    return found.level


def test_service_goes_on_by_itself_when_the_primary_is_killed(
    stack: Stack,
    valkeys: Sentinels,
    endpoint: Receiver,
) -> None:
    lives = Lives(ShopClient(stack.base_url, stack.secret_key), endpoint)
    with lives.without_end():
        lives.wait_for_more(10)
        assert is_redis_up(stack)
        assert valkeys.primary() == valkeys.first
        valkeys.kill(valkeys.first)
        wait_for_tasks(stack)
        assert valkeys.primary() == valkeys.second
        wait_until(lambda: is_redis_up(stack), PATIENCE)
        lives.wait_for_more(10)
    lives.wait_until_all_are_told()


def test_check_does_not_count_a_dead_replica(stack: Stack, valkeys: Sentinels) -> None:
    primary = valkeys.primary()
    (replica,) = {valkeys.first, valkeys.second} - {primary}
    valkeys.kill(replica)
    wait_until(lambda: sentinel_level(valkeys) == Level.WARNING, PATIENCE)
    (found,) = redis_server.sentinel_findings(valkeys.url)
    assert found.found == "no replica of the primary is up"
    valkeys.start_server(replica, f"replicaof 127.0.0.1 {primary}\n")
    wait_until(lambda: sentinel_level(valkeys) == Level.OK, PATIENCE)


def test_check_says_how_many_sentinels_answer(stack: Stack, valkeys: Sentinels) -> None:
    wait_until(lambda: sentinel_level(valkeys) == Level.OK, PATIENCE)
    valkeys.kill(valkeys.sentinels[0])
    (found,) = redis_server.sentinel_findings(valkeys.url)
    assert (found.level, found.found) == (Level.WARNING, "2 of 3 answer")
