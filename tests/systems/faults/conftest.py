"""An instance whose processes are killed, frozen and doubled. Each test has its own merchant."""

import json
import os
from collections.abc import Callable, Iterator
from random import Random, SystemRandom

import psycopg
import pytest

from tests.flows.conftest import ShopClient
from tests.memory import server_folder
from tests.stack import Stack, wait_until
from tests.systems.faults.hooks import Hook
from tests.webhook_receiver import Receiver

WEBHOOK_TIMEOUT_SECONDS = 10
# A delivery of a killed worker is claimed again after the time-out of a request and 15 s.
LEASE_SECONDS = WEBHOOK_TIMEOUT_SECONDS + 15


@pytest.fixture(scope="package")
def stack() -> Iterator[Stack]:
    """The rate limit is on, so that every request asks Redis, but cannot be reached."""
    settings = {"RATE_LIMIT": "10000", "WEBHOOK_TIMEOUT_SECONDS": str(WEBHOOK_TIMEOUT_SECONDS)}
    with server_folder("thai-qr-frail-") as folder, Stack(folder / "data", **settings) as running:
        yield running


@pytest.fixture
def shop_client(stack: Stack) -> ShopClient:
    """The client of a new merchant, when the instance is ready again."""
    wait_until(stack.is_ready, 180)
    made = json.loads(stack.manage("create_merchant", "--name", "Frail", "--mode", "test", "--json"))
    return ShopClient(stack.base_url, made["secret_key"])


@pytest.fixture
def register(shop_client: ShopClient, endpoint: Receiver) -> Callable[[str], Hook]:
    """Register a path of the receiver as a webhook."""
    return lambda path: Hook.register(shop_client, endpoint, path)


@pytest.fixture
def hook(register: Callable[[str], Hook]) -> Hook:
    return register("/hook")


@pytest.fixture
def database(stack: Stack) -> Iterator[psycopg.Connection]:
    with psycopg.connect(stack.env["DATABASE_URL"], autocommit=True) as connection:
        yield connection


@pytest.fixture
def chance(request: pytest.FixtureRequest) -> Random:
    """Repeat a failed run with the FAULT_SEED that it shows."""
    seed = os.environ.get("FAULT_SEED") or str(SystemRandom().randrange(10**6))
    request.node.add_report_section("setup", "chance", f"FAULT_SEED={seed}")
    return Random(seed)
