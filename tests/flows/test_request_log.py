"""The request log of web workers, which are forks of one parent."""

import json
import signal
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest
import requests

from tests.flows.conftest import ShopClient
from tests.stack import Stack, wait_until

REQUESTS = 60
pytestmark = pytest.mark.slow


def logged(shop: ShopClient, route: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = shop.get(f"/v1/requests?limit=100&route={route}")["requests"]
    return found


@pytest.fixture
def shop(stack: Stack) -> ShopClient:
    made = json.loads(stack.manage("create_merchant", "--name", "Logged", "--mode", "test", "--json"))
    return ShopClient(stack.base_url, made["secret_key"])


def ask(shop: ShopClient, number: int) -> None:
    # A new connection each time, because a worker keeps those that it has.
    headers = {"Authorization": f"Bearer {shop.secret_key}", "X-Request-Id": f"ask-{number}"}
    requests.get(f"{shop.base_url}/v1/balance", headers=headers, timeout=60).raise_for_status()


def ask_at_once(shop: ShopClient) -> None:
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(partial(ask, shop), range(REQUESTS)))


def logged_ids(shop: ShopClient) -> list[str]:
    return sorted(each["request_id"] for each in logged(shop, "/v1/balance"))


def sent_ids(count: int) -> list[str]:
    return sorted(f"ask-{number}" for number in range(count))


def test_each_worker_logs_each_of_its_requests_once(shop: ShopClient) -> None:
    ask_at_once(shop)
    wait_until(lambda: len(logged(shop, "/v1/balance")) >= REQUESTS, 60)
    ask(shop, REQUESTS)
    wait_until(lambda: len(logged(shop, "/v1/balance")) > REQUESTS, 60)
    assert logged_ids(shop) == sent_ids(REQUESTS + 1)


def test_web_server_that_is_stopped_writes_the_requests_that_it_has_answered(
    stack: Stack, shop: ShopClient
) -> None:
    """The log is written once a second, and the signal comes right after the last response."""
    ask_at_once(shop)
    stack.restart("web", signal.SIGTERM)
    wait_until(stack.is_ready, 180)
    assert logged_ids(shop) == sent_ids(REQUESTS)
