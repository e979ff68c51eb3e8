"""Endpoints that never answer do not delay the deliveries of another merchant."""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
import requests

from tests import webhook_receiver
from tests.stack import ROOT, Stack
from tests.systems.noisy_neighbours.conftest import check_undisturbed, quantile
from tests.webhook_receiver import ReceivedRequest, Receiver, Reply

pytestmark = [pytest.mark.slow, pytest.mark.alone]

SLOW_ENDPOINTS = 70
DELIVERIES = 20
PAUSE_SECONDS = 0.1


@pytest.fixture
def answering() -> Iterator[Receiver]:
    with webhook_receiver.running_receiver() as listening:
        yield listening


@pytest.fixture
def hanging() -> Iterator[Receiver]:
    with webhook_receiver.running_receiver() as listening:
        listening.on("/hook", Reply(hangs=True))
        yield listening


def open_merchant(stack: Stack, name: str) -> dict[str, str]:
    made: dict[str, str] = json.loads(
        stack.manage("create_merchant", "--name", name, "--mode", "test", "--json")
    )
    return made


def register(stack: Stack, merchant: dict[str, str], count: int, url: str) -> None:
    lenient = {"WEBHOOK_PROBE": "off", "RATE_LIMIT": "0", "WEBHOOKS_PER_MERCHANT": "1000"}
    subprocess.run(
        [
            sys.executable,
            "-m",
            "tests.systems.noisy_neighbours.endpoints",
            merchant["merchant_id"],
            str(count),
            url,
        ],
        cwd=ROOT,
        env={**stack.environ, **stack.env, "DJANGO_SETTINGS_MODULE": "config.settings", **lenient},
        check=True,
    )


def make_code(stack: Stack, merchant: dict[str, str]) -> Any:
    response = requests.post(
        f"{stack.base_url}/v1/qr-codes",
        json={"amount": 10_000, "currency": "THB"},
        headers={"Authorization": f"Bearer {merchant['secret_key']}"},
        timeout=60,
    )
    response.raise_for_status()
    return response.json()


def tells_of(payment_id: str, request: ReceivedRequest) -> bool:
    return bool(request.json["data"].get("payment_id") == payment_id)


def has_arrived(payment_id: str, requests: list[ReceivedRequest]) -> bool:
    return any(tells_of(payment_id, each) for each in requests)


def test_seventy_slow_endpoints_do_not_delay_deliveries_of_another_merchant(
    stack: Stack, answering: Receiver, hanging: Receiver
) -> None:
    """Before the fix, a delivery took 48 s instead of 0.1 s. Each measurement uses a new endpoint."""
    greedy = open_merchant(stack, "Greedy")
    register(stack, greedy, SLOW_ENDPOINTS, hanging.url())

    def p95_of_deliveries() -> float:
        merchant = open_merchant(stack, "Neighbour")
        register(stack, merchant, 1, answering.url())
        taken = []
        for _ in range(DELIVERIES):
            started = time.time()
            payment_id = make_code(stack, merchant)["payment_id"]
            arrived = answering.wait_for(partial(has_arrived, payment_id), timeout=120)
            taken.append(next(each.received_at for each in arrived if tells_of(payment_id, each)) - started)
            time.sleep(PAUSE_SECONDS)
        return quantile(taken, 0.95)

    def publish_to_slow_endpoints(stopped: threading.Event) -> None:
        for _ in range(8):
            make_code(stack, greedy)
        hanging.wait_for(lambda requests: len(requests) >= 5)
        stopped.wait()

    check_undisturbed(p95_of_deliveries, publish_to_slow_endpoints, clients=1)
    assert len(hanging.requests) < SLOW_ENDPOINTS * 4
