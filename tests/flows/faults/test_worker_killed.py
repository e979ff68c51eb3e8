"""A worker that dies in the middle of a post loses nothing; one that is stopped doubles nothing."""

import signal
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from standardwebhooks import Webhook

from tests.flows.conftest import ShopClient
from tests.flows.faults.conftest import LEASE_SECONDS
from tests.flows.faults.hooks import SECRET, Hook, events_by_payment
from tests.stack import STOP_SECONDS, Stack, wait_until
from tests.webhook_receiver import Receiver, Reply

pytestmark = pytest.mark.slow
# Beat looks every second; the rest is for a worker that still starts and a busy machine.
TAKEOVER_SECONDS = LEASE_SECONDS + 60
REPLACED_SECONDS = 60


def outcomes(delivery: dict[str, Any]) -> list[tuple[int, int | None, str | None]]:
    return [(each["number"], each["http_status"], each["error"]) for each in delivery["attempts"]]


def test_deliveries_of_killed_worker_are_repeated_and_no_others(
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
    stack.kill("webhooks")

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


def test_stopped_worker_finishes_its_deliveries(
    stack: Stack, shop_client: ShopClient, endpoint: Receiver, hook: Hook
) -> None:
    endpoint.on("/hook", Reply(delay=1.5))
    for _ in range(3):
        shop_client.qr_code()
    event_ids = set(events_by_payment(shop_client).values())
    hook.wait_for(event_ids, 60)
    gone = stack.kill("webhooks", signal.SIGTERM)
    wait_until(lambda: stack.pids.get("webhooks", gone) != gone, STOP_SECONDS)
    hook.wait_for_success(3, REPLACED_SECONDS)
    assert hook.delivered() == Counter(event_ids)
    assert all(outcomes(each) == [(1, 200, None)] for each in hook.deliveries())
