"""The request log of web workers, which are forks of one parent."""

import json
from concurrent.futures import ThreadPoolExecutor
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


def test_each_worker_logs_each_of_its_requests_once(stack: Stack) -> None:
    made = json.loads(stack.manage("create_merchant", "--name", "Logged", "--mode", "test", "--json"))
    shop = ShopClient(stack.base_url, made["secret_key"])

    def ask(number: int) -> None:
        # A new connection each time, because a worker keeps those that it has.
        headers = {"Authorization": f"Bearer {shop.secret_key}", "X-Request-Id": f"ask-{number}"}
        requests.get(f"{stack.base_url}/v1/balance", headers=headers, timeout=60).raise_for_status()

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(ask, range(REQUESTS)))
    wait_until(lambda: len(logged(shop, "/v1/balance")) >= REQUESTS, 60)
    ask(REQUESTS)
    wait_until(lambda: len(logged(shop, "/v1/balance")) > REQUESTS, 60)
    ids = sorted(each["request_id"] for each in logged(shop, "/v1/balance"))
    assert ids == sorted(f"ask-{number}" for number in range(REQUESTS + 1))
