"""The web server and PostgreSQL are killed while codes are made; whoever was answered can rely on it."""

from random import Random

import orjson
import pytest

from tests.flows.conftest import ShopClient
from tests.flows.faults import load
from tests.flows.faults.conftest import LEASE_SECONDS
from tests.flows.faults.hooks import Hook, events_by_payment, everything
from tests.stack import Stack
from tests.webhook_receiver import Receiver, Reply

pytestmark = pytest.mark.slow
# A post whose outcome could not be written down is made again when its lease has ended.
TAKEOVER_SECONDS = LEASE_SECONDS + 60


def test_acknowledged_codes_survive_server_kill_and_are_delivered(
    stack: Stack, shop_client: ShopClient, endpoint: Receiver, hook: Hook, chance: Random
) -> None:
    endpoint.on("/hook", Reply(delay=0.05))  # so that posts are under way at every moment
    with load.steady(shop_client) as codes:
        for name in chance.sample(["web", "postgres", "web"], 3):
            codes.wait_for_more(chance.randint(5, 40))
            stack.restart(name)
        codes.wait_for_more(20)

    repeated = codes.repeat()
    assert {key: response.body for key, response in repeated.items()} == codes.made
    assert all(response.replayed for response in repeated.values())
    payments = everything(shop_client, "/Thai/v1/payments", "payments")
    made = {orjson.loads(body)["payment_id"]: key for key, body in codes.made.items()}
    assert len(payments) == len(made)
    assert {each["payment_id"]: each["reference"] for each in payments} == made

    shown = events_by_payment(shop_client)
    assert shown.keys() == made.keys()
    hook.wait_for(set(shown.values()), TAKEOVER_SECONDS)
    hook.wait_for_success(len(shown), TAKEOVER_SECONDS)
    assert hook.delivered().keys() == set(shown.values())
