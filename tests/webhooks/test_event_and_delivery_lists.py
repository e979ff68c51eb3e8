"""A merchant lists events, and the deliveries of a webhook."""

import pytest

from core.clock import iso
from tests.conftest import Shop
from tests.webhook_receiver import Receiver, Reply
from tests.webhooks.api_calls import LATER, drain, error_code, list_deliveries, webhook_path
from tests.webhooks.builders import NOW, PAYMENT_SUCCEEDED, claim, make_endpoint, publish

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("loopback", "frozen")]


@pytest.mark.slow
def test_event_is_returned_as_sent_with_its_sequence(
    shop: Shop, other_shop: Shop, receiver: Receiver
) -> None:
    make_endpoint(shop, receiver.url())
    publish(shop, note="ส้มตำ")
    drain()
    (sent,) = receiver.requests
    path = f"/Thai/v1/events/{sent.json['event_id']}"
    assert shop.get(path).content == sent.body[:-1] + b',"sequence":1}'
    assert error_code(other_shop.get(path)) == (404, "event_not_found")
    assert error_code(shop.get("/v1/events/evt_x")) == (404, "event_not_found")


def test_events_are_listed_newest_first_by_type_and_time(shop: Shop) -> None:
    publish(shop)
    publish(shop, type="payment.failed", at=LATER)
    both = shop.get("/v1/events").json()
    assert (both["total"], [each["event"] for each in both["events"]]) == (
        2,
        ["payment.failed", PAYMENT_SUCCEEDED],
    )
    assert shop.get(f"/v1/events?event={PAYMENT_SUCCEEDED}").json()["events"] == both["events"][1:]
    assert shop.get("/v1/events?start_date=2026-11-22").json()["events"] == both["events"][:1]
    assert error_code(shop.get("/v1/events?event=payment.paid")) == (400, "invalid_parameters")


@pytest.mark.slow
def test_delivery_lists_all_attempts(shop: Shop, receiver: Receiver) -> None:
    receiver.on("/hook", Reply(status=503, body=b"x" * 600), Reply(status=204, body=b""))
    endpoint = make_endpoint(shop, receiver.url())
    publish(shop)
    drain(NOW)
    (waiting,) = list_deliveries(shop, endpoint)
    assert (waiting["state"], waiting["trigger"], waiting["finished_at"]) == ("pending", "auto", None)
    assert waiting["next_attempt_at"] > iso(NOW)
    drain()
    (taken,) = list_deliveries(shop, endpoint)
    assert (taken["state"], taken["next_attempt_at"], taken["finished_at"]) == ("succeeded", None, iso(LATER))
    first, second = taken["attempts"]
    assert (first["number"], first["http_status"], first["error"]) == (1, 503, "http_5xx")
    assert first["response"] == "x" * 500
    assert (second["number"], second["http_status"], second["error"]) == (2, 204, None)


@pytest.mark.slow
def test_deliveries_are_found_by_state_and_event(shop: Shop) -> None:
    endpoint = make_endpoint(shop, events=[PAYMENT_SUCCEEDED, "payment.failed"])
    publish(shop)
    publish(shop, type="payment.failed")
    claim(1)
    assert len(list_deliveries(shop, endpoint, "?state=pending")) == 2
    assert list_deliveries(shop, endpoint, "?state=held") == []
    (failed,) = list_deliveries(shop, endpoint, "?event=payment.failed")
    assert failed["event"] == "payment.failed"
    assert len(list_deliveries(shop, endpoint, "?start_date=2026-11-21&end_date=2026-11-21")) == 2
    assert list_deliveries(shop, endpoint, "?start_date=2026-11-22") == []
    answer = shop.get(webhook_path(endpoint, "deliveries") + "?state=leased")
    assert error_code(answer) == (400, "invalid_parameters")


def test_deliveries_are_read_from_a_row_on(shop: Shop) -> None:
    endpoint = make_endpoint(shop, events=[PAYMENT_SUCCEEDED])
    for _ in range(3):
        publish(shop)
    newest, middle, oldest = (each["delivery_id"] for each in list_deliveries(shop, endpoint))
    for cursor, expected in (("after", oldest), ("before", newest)):
        (found,) = list_deliveries(shop, endpoint, f"?{cursor}={middle}")
        assert found["delivery_id"] == expected
    answer = shop.get(webhook_path(endpoint, "deliveries") + f"?after={middle}&offset=1")
    assert error_code(answer) == (400, "invalid_parameters")
