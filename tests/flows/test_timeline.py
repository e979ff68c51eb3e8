"""Actors in the timeline, with real processes: web server, worker, and sandbox bank over HTTP."""

from typing import Any

import pytest

from merchants import secret_keys
from tests.flows.conftest import ShopClient
from tests.stack import wait_until

pytestmark = pytest.mark.slow


def entries_of(client: ShopClient, code: dict[str, Any], type: str) -> list[dict[str, Any]]:
    """Return the timeline entries of a type, the oldest first."""
    timeline = client.get(f"/v1/payments/{code['payment_id']}/timeline?limit=100")["timeline"]
    return [entry for entry in reversed(timeline) if entry["type"] == type]


def test_timeline_entries_have_right_actors(shop_client: ShopClient) -> None:
    code = shop_client.qr_code()
    shop_client.pay(code)
    shop_client.wait_for_status(code, "succeeded")
    refund = shop_client.post("/v1/refunds", {"payment_id": code["payment_id"], "amount": 50_000})
    wait_until(lambda: shop_client.get(f"/v1/refunds/{refund['refund_id']}")["status"] == "completed", 60)
    (born,), (notification,), (paid,) = (
        entries_of(shop_client, code, type)
        for type in ("payment.pending", "bank.notification", "payment.succeeded")
    )
    assert born["actor"] == f"key:{secret_keys.public_id(shop_client.secret_key)}"
    assert notification["actor"] == paid["actor"] == "bank:sandbox"
    assert notification["request_id"] == paid["request_id"] != born["request_id"]
    for type in ("refund.submitted", "refund.completed"):
        *_, entry = entries_of(shop_client, code, type)
        assert entry["actor"] == "clock" and entry["request_id"]


def test_timeline_of_a_payment_found_by_inquiry_has_clock_as_actor(shop_client: ShopClient) -> None:
    code = shop_client.qr_code()
    shop_client.pay(code, "callback_lost")
    shop_client.wait_for_status(code, "succeeded")
    (paid,), (notification,) = (
        entries_of(shop_client, code, type) for type in ("payment.succeeded", "bank.notification")
    )
    assert (paid["actor"], notification["actor"]) == ("clock", "bank:sandbox")
    assert notification["details"]["source"] == "inquiry"
    # The inquiry is recorded after its result is applied.
    wait_until(
        lambda: any(
            each["details"]["answer"] == "found" for each in entries_of(shop_client, code, "bank.inquiry")
        ),
        60,
    )
    *_, inquiry = entries_of(shop_client, code, "bank.inquiry")
    assert inquiry["actor"] == "clock"
    assert inquiry["request_id"] == notification["request_id"] == paid["request_id"] is not None
    assert shop_client.get(f"/v1/payments/{code['payment_id']}/timeline")["sources"] == ["inquiry"]
