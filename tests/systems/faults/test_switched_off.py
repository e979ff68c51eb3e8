"""A webhook that is disabled while codes are created gets all held events after it is enabled."""

from collections import Counter

import pytest

from tests.flows.conftest import ShopClient
from tests.stack import wait_until
from tests.systems.faults import load
from tests.systems.faults.hooks import Hook, events_by_payment, everything
from tests.webhook_receiver import Receiver, Reply

pytestmark = pytest.mark.slow


def first_instant(client: ShopClient) -> str:
    """The time of the first event of the merchant."""
    return str(everything(client, "/v1/events", "events")[-1]["timestamp"])


def test_held_deliveries_are_replayed_once_after_webhook_is_enabled(
    shop_client: ShopClient, hook: Hook
) -> None:
    with load.steady(shop_client) as codes:
        codes.wait_for_more(20)
        hook.set_status("disabled")
        codes.wait_for_more(20)
        wait_until(lambda: hook.count("held") > 0, 60)
        hook.wait_for_none_waiting()
        quiet = hook.delivered()
        codes.wait_for_more(20)
        assert hook.delivered() == quiet
        hook.set_status("active")
        codes.wait_for_more(20)

    hook.wait_for_none_waiting()
    shown, held = events_by_payment(shop_client), hook.count("held")
    assert held > 0
    assert hook.replay(first_instant(shop_client)) == held
    hook.wait_for(set(shown.values()), 60)
    hook.wait_for_none_waiting()
    assert hook.delivered() == Counter(shown.values())


def test_held_deliveries_are_replayed_after_answer_410(
    shop_client: ShopClient, endpoint: Receiver, hook: Hook
) -> None:
    endpoint.on("/hook", Reply(status=410))
    refused = shop_client.qr_code()
    wait_until(lambda: hook.status == "disabled", 60)
    for _ in range(5):
        shop_client.qr_code()
    hook.wait_for_none_waiting()
    shown = events_by_payment(shop_client)
    assert hook.count("held") == len(shown) == 6

    endpoint.on("/hook", Reply())
    hook.set_status("active")
    assert hook.replay(first_instant(shop_client)) == 6
    hook.wait_for(set(shown.values()), 60)
    hook.wait_for_success(6)
    assert hook.delivered() == Counter(shown.values()) + Counter([shown[refused["payment_id"]]])
