"""Somebody without a key at the sandbox bank's page, beside a merchant."""

import re
import threading
from collections import Counter

import psycopg
import pytest
import requests

from core import references, thaiqr
from tests.flows.noisy_neighbours.conftest import Neighbour
from tests.stack import Stack

pytestmark = [pytest.mark.slow, pytest.mark.alone]

TOKEN = re.compile('name="csrfmiddlewaretoken" value="([^"]+)"')


def test_payments_without_a_key_neither_slow_down_a_neighbour_nor_fill_the_exceptions(
    stack: Stack, neighbour: Neighbour
) -> None:
    """They made 400 exceptions in 20 s."""
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

    neighbour.is_undisturbed_by(pay_made_up_codes, clients=2)
    assert set(seen) == {400, 429}, seen
    with psycopg.connect(stack.env["DATABASE_URL"]) as database:
        found = database.execute("SELECT count(*) FROM sandbox_sandboxpayment").fetchone()
    assert found == (0,)
