"""Clients that ask a lot, each within its own limits, beside a neighbour."""

import threading

import pytest
import requests

from tests.flows.noisy_neighbours.conftest import Neighbour
from tests.stack import Stack

pytestmark = [pytest.mark.slow, pytest.mark.alone]


def test_clients_over_their_rate_limit_do_not_slow_down_a_neighbour(
    stack: Stack, neighbour: Neighbour
) -> None:
    """Answered with 429 before any work is done."""
    seen: set[int] = set()

    def ask_without_a_pause(stopped: threading.Event) -> None:
        session = requests.Session()
        session.headers["Authorization"] = f"Bearer {stack.secret_key}"
        while not stopped.is_set():
            seen.add(session.get(f"{stack.base_url}/v1/balance", timeout=60).status_code)

    neighbour.is_undisturbed_by(ask_without_a_pause, clients=8)
    assert seen == {200, 429}
