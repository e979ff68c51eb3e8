"""The web server and PostgreSQL are killed while codes are made; whoever was answered can rely on it."""

from random import Random

import orjson
import pytest

from tests.flows.conftest import Till
from tests.flows.faults import load
from tests.flows.faults.conftest import LEASE_SECONDS
from tests.flows.faults.hooks import Hook, events_by_payment, everything
from tests.receiver import Receiver, Reply
from tests.stack import Stack

pytestmark = pytest.mark.slow
# A post whose outcome could not be written down is made again when its lease has ended.
TAKEOVER_SECONDS = LEASE_SECONDS + 60


def test_every_acknowledged_code_survives_and_is_told(
    stack: Stack, till: Till, endpoint: Receiver, hook: Hook, chance: Random
) -> None:
    endpoint.on("/hook", Reply(delay=0.05))  # so that posts are under way at every moment
    with load.steady(till) as codes:
        for name in chance.sample(["web", "postgres", "web"], 3):
            codes.wait_for_more(chance.randint(5, 40))
            stack.restart(name)
        codes.wait_for_more(20)

    repeated = codes.repeat()
    assert {key: answer.body for key, answer in repeated.items()} == codes.made
    assert all(answer.replayed for answer in repeated.values())
    payments = everything(till, "/Thai/v1/payments", "payments")
    made = {orjson.loads(body)["payment_id"]: key for key, body in codes.made.items()}
    assert len(payments) == len(made)
    assert {each["payment_id"]: each["reference"] for each in payments} == made

    told = events_by_payment(till)
    assert told.keys() == made.keys()
    hook.wait_for(set(told.values()), TAKEOVER_SECONDS)
    hook.wait_for_success(len(told), TAKEOVER_SECONDS)
    assert hook.told().keys() == set(told.values())
