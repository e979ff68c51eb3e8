"""A worker that dies in the middle of a post loses nothing; one that is stopped doubles nothing."""

import signal
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from standardwebhooks import Webhook

from tests.flows.conftest import Till
from tests.flows.faults.conftest import LEASE_SECONDS
from tests.flows.faults.hooks import SECRET, Hook, events_by_payment
from tests.receiver import Receiver, Reply
from tests.stack import STOP_SECONDS, Stack, wait_until

pytestmark = pytest.mark.slow
# Beat looks every second; the rest is for a worker that still starts and a busy machine.
TAKEOVER_SECONDS = LEASE_SECONDS + 60
REPLACED_SECONDS = 60


def outcomes(delivery: dict[str, Any]) -> list[tuple[int, int | None, str | None]]:
    return [(each["number"], each["http_status"], each["error"]) for each in delivery["attempts"]]


def test_what_a_killed_worker_was_posting_is_posted_again_and_nothing_else(
    stack: Stack, till: Till, endpoint: Receiver, register: Callable[[str], Hook]
) -> None:
    held, other = register("/held"), register("/other")
    for _ in range(8):
        till.qr_code()
    held.wait_for_success(8)
    other.wait_for_success(8)

    endpoint.on("/held", Reply(hangs=True), Reply())
    code = till.qr_code()
    event_id = events_by_payment(till)[code["payment_id"]]
    held.wait_for({event_id}, 60)
    other.wait_for_success(9)
    stack.kill("webhooks")

    later = till.qr_code()
    later_id = events_by_payment(till)[later["payment_id"]]
    held.wait_for({later_id}, REPLACED_SECONDS)
    wait_until(lambda: held.told()[event_id] == 2, TAKEOVER_SECONDS)
    held.wait_for_success(10)
    other.wait_for_success(10)

    first, second = (each for each in endpoint.to("/held") if each.headers["webhook-id"] == event_id)
    assert second.body == first.body
    assert int(second.headers["webhook-timestamp"]) > int(first.headers["webhook-timestamp"])
    assert Webhook(SECRET).verify(second.body, second.headers)["event_id"] == event_id
    assert outcomes(held.delivery_of(event_id)) == [(1, None, "worker_lost"), (2, 200, None)]
    assert outcomes(held.delivery_of(later_id)) == [(1, 200, None)]
    everybody = Counter(events_by_payment(till).values())
    assert held.told() == everybody + Counter([event_id])
    assert other.told() == everybody


def test_a_worker_that_is_told_to_stop_finishes_its_posts(
    stack: Stack, till: Till, endpoint: Receiver, hook: Hook
) -> None:
    endpoint.on("/hook", Reply(delay=1.5))
    for _ in range(3):
        till.qr_code()
    event_ids = set(events_by_payment(till).values())
    hook.wait_for(event_ids, 60)
    gone = stack.kill("webhooks", signal.SIGTERM)
    wait_until(lambda: stack.pids.get("webhooks", gone) != gone, STOP_SECONDS)
    hook.wait_for_success(3, REPLACED_SECONDS)
    assert hook.told() == Counter(event_ids)
    assert all(outcomes(each) == [(1, 200, None)] for each in hook.deliveries())
