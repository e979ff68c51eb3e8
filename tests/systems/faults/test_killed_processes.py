"""Killed and stopped web servers, databases and workers: no acknowledged code and no delivery is lost."""

import signal
from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

import orjson
import pytest
from standardwebhooks import Webhook

from tests.flows.conftest import SECRET, ShopClient
from tests.stack import STOP_SECONDS, Stack, wait_until
from tests.systems.faults import load
from tests.systems.faults.conftest import LEASE_SECONDS
from tests.systems.faults.hooks import Hook, events_by_payment, everything
from tests.webhook_receiver import Receiver, Reply

pytestmark = pytest.mark.slow
# Beat starts a drain every second. The rest is for a worker that still starts, and a busy machine.
TAKEOVER_SECONDS = LEASE_SECONDS + 60
REPLACED_SECONDS = 60


def outcomes(delivery: dict[str, Any]) -> list[tuple[int, int | None, str | None]]:
    return [(each["number"], each["http_status"], each["error"]) for each in delivery["attempts"]]


def test_only_deliveries_of_a_killed_worker_are_repeated(
    stack: Stack, shop_client: ShopClient, endpoint: Receiver, register: Callable[[str], Hook]
) -> None:
    held, other = register("/held"), register("/other")
    for _ in range(8):
        shop_client.qr_code()
    held.wait_for_success(8)
    other.wait_for_success(8)

    endpoint.on("/held", Reply(hangs=True), Reply())
    code = shop_client.qr_code()
    event_id = events_by_payment(shop_client)[code["payment_id"]]
    held.wait_for({event_id}, 60)
    other.wait_for_success(9)
    stack.kill("worker")

    later = shop_client.qr_code()
    later_id = events_by_payment(shop_client)[later["payment_id"]]
    held.wait_for({later_id}, REPLACED_SECONDS)
    wait_until(lambda: held.delivered()[event_id] == 2, TAKEOVER_SECONDS)
    held.wait_for_success(10)
    other.wait_for_success(10)

    first, second = (each for each in endpoint.to("/held") if each.headers["webhook-id"] == event_id)
    assert second.body == first.body
    assert int(second.headers["webhook-timestamp"]) > int(first.headers["webhook-timestamp"])
    assert Webhook(SECRET).verify(second.body, second.headers)["event_id"] == event_id
    assert outcomes(held.delivery_of(event_id)) == [(1, None, "worker_lost"), (2, 200, None)]
    assert outcomes(held.delivery_of(later_id)) == [(1, 200, None)]
    everybody = Counter(events_by_payment(shop_client).values())
    assert held.delivered() == everybody + Counter([event_id])
    assert other.delivered() == everybody


def test_stopped_webhook_worker_finishes_deliveries_in_flight(
    stack: Stack, shop_client: ShopClient, endpoint: Receiver, hook: Hook
) -> None:
    endpoint.on("/hook", Reply(delay=1.5))
    for _ in range(3):
        shop_client.qr_code()
    event_ids = set(events_by_payment(shop_client).values())
    hook.wait_for(event_ids, 60)
    gone = stack.kill("worker", signal.SIGTERM)
    wait_until(lambda: stack.pids.get("worker", gone) != gone, STOP_SECONDS)
    hook.wait_for_success(3, REPLACED_SECONDS)
    assert hook.delivered() == Counter(event_ids)
    assert all(outcomes(each) == [(1, 200, None)] for each in hook.deliveries())


def test_qr_codes_acknowledged_before_a_server_kill_are_stored_and_delivered(
    stack: Stack, shop_client: ShopClient, endpoint: Receiver, hook: Hook, chance: Random
) -> None:
    endpoint.on("/hook", Reply(delay=0.05))  # so that requests are in progress all the time
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
