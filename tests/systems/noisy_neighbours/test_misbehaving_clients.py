"""Clients that guess keys and passwords, exceed limits or pay made-up codes do not slow down a neighbour."""

import re
import resource
import selectors
import socket
import threading
from collections import Counter
from itertools import count, cycle

import psycopg
import pytest
import requests

from core.thai import references, thaiqr
from merchants import secret_keys
from tests.raw_http import HALF_BODY, HALF_HEADER, HEAD, opened
from tests.stack import Stack
from tests.systems.noisy_neighbours.conftest import Neighbour

pytestmark = [pytest.mark.slow, pytest.mark.alone]


def test_clients_over_the_rate_limit_do_not_slow_down_another_merchant(
    stack: Stack, neighbour: Neighbour
) -> None:
    """They get 429 before the service does any work."""
    seen: set[int] = set()

    def ask_without_a_pause(stopped: threading.Event) -> None:
        session = requests.Session()
        session.headers["Authorization"] = f"Bearer {stack.secret_key}"
        while not stopped.is_set():
            seen.add(session.get(f"{stack.base_url}/v1/balance", timeout=60).status_code)

    neighbour.is_undisturbed_by(ask_without_a_pause, clients=8, until=lambda: 429 in seen)
    assert seen == {200, 429}


def test_guessed_api_keys_do_not_slow_down_another_merchant(stack: Stack, neighbour: Neighbour) -> None:
    """Eight clients try well-formed keys from the address of the neighbour."""
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

    neighbour.is_undisturbed_by(guess, clients=8, until=lambda: 429 in seen)
    assert seen == {401, 429}


LOGIN = "/admin/login/"


def test_password_guessing_does_not_slow_down_another_merchant(stack: Stack, neighbour: Neighbour) -> None:
    """Each guess is for another user, so only the limits of the address and of the process apply."""
    seen: Counter[int] = Counter()
    numbers = count()

    def guess(stopped: threading.Event) -> None:
        session = requests.Session()
        token = _token(session, stack.base_url)
        while not stopped.is_set():
            shown = {"login": f"guess-{next(numbers)}", "password": "x", "csrfmiddlewaretoken": token}
            response = session.post(stack.base_url + LOGIN, shown, timeout=60)
            seen[response.status_code] += 1
            assert response.status_code == 200 or int(response.headers["Retry-After"]) > 0

    try:
        neighbour.is_undisturbed_by(guess, clients=16, until=lambda: 429 in seen)
    finally:
        print(seen)  # noqa: T201
        stack.manage("lift_lockout", "127.0.0.1/32")
    # 503 comes only if two guesses are hashed at once.
    assert {200, 429} <= set(seen) <= {200, 429, 503}


def _token(session: requests.Session, base_url: str) -> str:
    """The CSRF token of the login form. The page may be refused while others load it too."""
    while True:
        page = session.get(base_url + LOGIN, timeout=60)
        if page.status_code == 200:
            found = TOKEN.search(page.text)
            assert found, "a page without a form"
            return found[1]


TOKEN = re.compile('name="csrfmiddlewaretoken" value="([^"]+)"')


def test_anonymous_sandbox_payments_do_not_slow_down_another_merchant_or_create_exceptions(
    stack: Stack, neighbour: Neighbour
) -> None:
    """Without a limit they made 400 exceptions in 20 s."""
    code = requests.post(
        f"{stack.base_url}/v1/qr-codes",
        json={"amount": 10_000, "currency": "THB"},
        headers={"Authorization": f"Bearer {stack.secret_key}"},
        timeout=60,
    ).json()["qr_data"]
    biller_id = thaiqr.parse(code).biller_id
    assert biller_id
    page = f"{stack.base_url}/sandbox/bank"
    seen: Counter[int] = Counter()

    def pay_made_up_codes(stopped: threading.Event) -> None:
        session = requests.Session()
        token = TOKEN.search(session.get(page, params={"qr_data": code}, timeout=60).text)
        assert token
        while not stopped.is_set():
            made_up = thaiqr.bill_payment(biller_id=biller_id, reference1=references.new(), amount=10_000)
            shown = {"csrfmiddlewaretoken": token[1], "qr_data": made_up}
            response = session.post(page, shown, timeout=60, allow_redirects=False)
            seen[response.status_code] += 1

    neighbour.is_undisturbed_by(pay_made_up_codes, clients=2, until=lambda: 429 in seen)
    assert set(seen) == {400, 429}, seen
    with psycopg.connect(stack.env["DATABASE_URL"]) as database:
        found = database.execute("SELECT count(*) FROM sandbox_sandboxpayment").fetchone()
    assert found == (0,)


CONNECTIONS = 2000
LONG_PAGE = 40_000  # bytes of 100 payments
STALLED = [b"", HALF_HEADER, HALF_BODY, b"GET /healthz" + HEAD + b"\r\n" + HALF_HEADER]


def test_connections_with_half_a_request_do_not_slow_down_another_merchant(
    stack: Stack, neighbour: Neighbour
) -> None:
    """Each that the server closes opens again."""
    most: list[int] = []
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))  # often 1024 at first

    def hold(stopped: threading.Event) -> None:
        kinds = cycle(STALLED)
        with selectors.DefaultSelector() as held:
            while not stopped.is_set():
                while len(held.get_map()) < CONNECTIONS and not stopped.is_set():
                    connection = opened(stack.port, next(kinds))
                    held.register(connection, selectors.EVENT_READ, connection)
                most.append(len(held.get_map()))
                for key, _ in held.select(0.05):
                    if has_ended(key.data):
                        held.unregister(key.data)
                        key.data.close()
            for key in held.get_map().values():
                key.data.close()

    neighbour.is_undisturbed_by(hold, clients=1, until=lambda: CONNECTIONS in most)


def has_ended(connection: socket.socket) -> bool:
    try:
        return not connection.recv(65_536)
    except ConnectionError:
        return True


def test_readers_of_documents_do_not_slow_down_a_merchant(stack: Stack, neighbour: Neighbour) -> None:
    seen: Counter[int] = Counter()

    def read(stopped: threading.Event) -> None:
        session = requests.Session()
        for path in cycle(["/openapi.json", "/guide"]):
            if stopped.is_set():
                return
            seen[session.get(stack.base_url + path, timeout=60).status_code] += 1

    neighbour.is_undisturbed_by(read, clients=8, until=lambda: seen[200] > 100)
    assert set(seen) == {200}


def test_merchant_that_reads_long_lists_does_not_slow_down_another_merchant(
    stack: Stack, neighbour: Neighbour
) -> None:
    headers = {"Authorization": f"Bearer {stack.secret_key}"}
    sale = {"amount": 10_000, "currency": "THB"}
    for _ in range(100):
        made = requests.post(f"{stack.base_url}/v1/qr-codes", json=sale, headers=headers, timeout=60)
        assert made.status_code == 200, made.text
    seen: Counter[tuple[int, bool]] = Counter()

    def read_lists(stopped: threading.Event) -> None:
        session = requests.Session()
        session.headers.update(headers)
        while not stopped.is_set():
            page = session.get(f"{stack.base_url}/v1/payments?limit=100", timeout=60)
            seen[page.status_code, len(page.content) > LONG_PAGE] += 1

    neighbour.is_undisturbed_by(read_lists, clients=16, until=lambda: seen[200, True] > 100)
    assert set(seen) <= {(200, True), (429, False)}
