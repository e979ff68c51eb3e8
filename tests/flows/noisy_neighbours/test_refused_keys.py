"""Clients without a valid key, beside a neighbour."""

import threading

import pytest
import requests

from merchants import secret_keys
from tests.flows.noisy_neighbours.conftest import Neighbour
from tests.stack import Stack

pytestmark = [pytest.mark.slow, pytest.mark.alone]


def test_guessed_keys_do_not_slow_down_a_neighbour(stack: Stack, neighbour: Neighbour) -> None:
    """Eight clients try keys of the right shape, from the address that the neighbour has as well."""
    seen: set[int] = set()

    def guess(stopped: threading.Event) -> None:
        session = requests.Session()
        while not stopped.is_set():
            headers = {"Authorization": f"Bearer {secret_keys.generate('test')}"}
            response = session.get(f"{stack.base_url}/v1/balance", headers=headers, timeout=60)
            seen.add(response.status_code)
            if response.status_code == 429:
                assert int(response.headers["Retry-After"]) >= 1
                stopped.wait(0.02)

    neighbour.is_undisturbed_by(guess, clients=8)
    assert seen == {401, 429}
