"""Machines and shops for the chaos test. One seed draws the operations and the faults."""

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random, SystemRandom

import pytest

from tests import webhook_receiver
from tests.patroni import Cluster, running_cluster
from tests.stack import Stack
from tests.systems.chaos.machines import three_machines
from tests.systems.chaos.shops import Shop
from tests.webhook_receiver import Receiver

SHOPS = int(os.environ.get("CHAOS_SHOPS", "3"))
SECRET = "whsec_" + "c2VjcmV0" * 5
EVENTS = ["payment.pending", "payment.succeeded", "refund.completed", "withdrawal.succeeded"]


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with running_cluster() as running:
        yield running


@pytest.fixture
def machines(cluster: Cluster, tmp_path: Path) -> Iterator[Sequence[Stack]]:
    with three_machines(tmp_path, cluster) as running:
        yield running


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with webhook_receiver.running_receiver() as listening:
        yield listening


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> str:
    """Repeat a failed run with the FAULT_SEED that it shows."""
    given = os.environ.get("FAULT_SEED") or str(SystemRandom().randrange(10**6))
    request.node.add_report_section("setup", "chance", f"FAULT_SEED={given}")
    return given


@pytest.fixture
def shops(machines: Sequence[Stack], receiver: Receiver, seed: str) -> list[Shop]:
    """New merchants, each with a webhook at a path of its own."""
    return [_shop(machines, receiver, number, Random(f"{seed}:{number}")) for number in range(SHOPS)]


def _shop(machines: Sequence[Stack], receiver: Receiver, number: int, chance: Random) -> Shop:
    name = f"Shop {number}"
    made = json.loads(machines[0].manage("create_merchant", "--name", name, "--mode", "test", "--json"))
    shop = Shop(machines, made["secret_key"], chance)
    shop.order("/v1/webhooks", {"url": receiver.url(f"/{number}"), "events": EVENTS, "secret": SECRET})
    return shop
