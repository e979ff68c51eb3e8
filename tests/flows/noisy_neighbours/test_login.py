"""Clients that guess passwords of the console, beside a neighbour."""

import threading
from collections import Counter
from itertools import count

import pytest
import requests

from tests.flows.noisy_neighbours.conftest import Neighbour
from tests.flows.staff_browser import TOKEN
from tests.stack import Stack

pytestmark = [pytest.mark.slow, pytest.mark.alone]

LOGIN = "/admin/login/"


def test_clients_that_guess_passwords_do_not_slow_down_a_neighbour(
    stack: Stack, neighbour: Neighbour
) -> None:
    """Each guess is for another user, so that only the limits of the address and of the process hold."""
    seen: Counter[int] = Counter()
    numbers = count()

    def guess(stopped: threading.Event) -> None:
        session = requests.Session()
        token = _token(session, stack.base_url)
        while not stopped.is_set():
            shown = {"username": f"guess-{next(numbers)}", "password": "x", "csrfmiddlewaretoken": token}
            response = session.post(stack.base_url + LOGIN, shown, timeout=60)
            seen[response.status_code] += 1
            assert response.status_code == 200 or int(response.headers["Retry-After"]) > 0

    try:
        neighbour.is_undisturbed_by(guess, clients=16)
    finally:
        print(seen)  # noqa: T201
        stack.manage("lift_lockout", "127.0.0.1/32")
    # 503 comes only where two guesses are hashed at once.
    assert {200, 429} <= set(seen) <= {200, 429, 503}


def _token(session: requests.Session, base_url: str) -> str:
    """Of the form; the page may be refused while the others ask for it too."""
    while True:
        page = session.get(base_url + LOGIN, timeout=60)
        if page.status_code == 200:
            found = TOKEN.search(page.text)
            assert found, "a page without a form"
            return found[1]
