"""Pictures that are slow to read, sent at claim links, do not delay other merchants."""

import threading
from collections import Counter

import pytest
import requests

from tests.flows.claim_links import waiting_claim
from tests.flows.conftest import ShopClient
from tests.reconciliation.claims.builders import FORM
from tests.stack import Stack
from tests.systems.noisy_neighbours.conftest import Neighbour
from tests.systems.volume.test_slow_slips import trap

pytestmark = [pytest.mark.slow, pytest.mark.alone]
PAYERS = 4


def test_slow_pictures_at_claim_links_delay_no_other_merchant(stack: Stack, neighbour: Neighbour) -> None:
    shop = ShopClient(stack.base_url, stack.secret_key)
    urls = iter([waiting_claim(stack, shop)["url"] for _ in range(PAYERS)])
    picture, answers = trap(), Counter[str]()

    def send_until_stopped(stopped: threading.Event) -> None:
        url = f"{next(urls)}?lang=en"
        while not stopped.is_set():
            answer = requests.post(url, data=FORM, files={"picture": ("slip.png", picture)}, timeout=60)
            is_slow = "takes too long to read" in answer.text
            answers["slow" if is_slow else str(answer.status_code)] += 1
            stopped.wait(0.1)

    neighbour.is_undisturbed_by(send_until_stopped, clients=PAYERS, until=lambda: answers["slow"] > 0)
    assert set(answers) <= {"slow", "422", "429", "503"}
