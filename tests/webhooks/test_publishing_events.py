"""An event and its deliveries are stored in the commit of the change."""

import orjson
import pytest
from django.db import transaction
from pytest_django import DjangoAssertNumQueries

from core.database import rows
from tests.conftest import Shop
from tests.sqlstates import NOT_ALLOWED, sqlstate
from tests.webhooks.builders import NOW, PAYMENT_SUCCEEDED, make_endpoint, new_event
from webhooks import endpoints, events
from webhooks.models import Delivery, Endpoint, EndpointStatus, Event

pytestmark = pytest.mark.django_db


def publish(shop: Shop, type: str = PAYMENT_SUCCEEDED) -> Event:
    prepared = new_event(shop, type=type)
    events.publish(prepared)
    event: Event = Event.objects.get(subject_id=prepared.subject_id)
    return event


def states() -> dict[str, str]:
    return dict(Delivery.objects.values_list("endpoint_id", "state"))


def test_event_body_is_compact_json_with_event_type_and_id(shop: Shop) -> None:
    prepared = new_event(shop, metadata={"table": 7, "ชื่อ": "ก"})
    events.publish(prepared)
    event = Event.objects.get()
    body = {
        "event": PAYMENT_SUCCEEDED,
        "event_id": event.id,
        "data": prepared.data,
        "timestamp": "2026-11-21T03:04:05.123Z",
    }
    assert bytes(event.body) == orjson.dumps(body)
    assert event.id.startswith("evt_")


def test_event_without_subscribers_is_stored(shop: Shop) -> None:
    assert publish(shop).merchant_id == shop.merchant.id
    assert states() == {}


def test_only_subscribers_of_same_merchant_get_delivery(shop: Shop, other_shop: Shop) -> None:
    make_endpoint(other_shop)
    make_endpoint(shop, events=["refund.failed"])
    subscriber = make_endpoint(shop, events=["refund.failed", PAYMENT_SUCCEEDED])
    event = publish(shop)
    delivery = Delivery.objects.get()
    assert (delivery.endpoint_id, delivery.event_id) == (subscriber.id, event.id)
    assert (delivery.state, delivery.attempt_count, delivery.due_at) == ("pending", 0, NOW)


def test_events_of_disabled_endpoint_are_held(shop: Shop) -> None:
    endpoint = make_endpoint(shop, status=EndpointStatus.DISABLED)
    publish(shop)
    endpoints.sweep_inactive(now=NOW)
    assert states() == {endpoint.id: "held"}


def test_endpoint_enabled_during_publish_gets_event(shop: Shop) -> None:
    endpoint = make_endpoint(shop, status=EndpointStatus.DISABLED)
    prepared = events.prepare(new_event(shop), [(endpoint.id, endpoint.events)])
    endpoints.enable(endpoint_id=endpoint.id, now=NOW)
    rows.insert_together(prepared)
    endpoints.sweep_inactive(now=NOW)
    assert states() == {endpoint.id: "pending"}
    assert events.has_deliveries(prepared)


def test_deleted_endpoint_gets_no_delivery(shop: Shop) -> None:
    make_endpoint(shop, deleted_at=NOW)
    publish(shop)
    assert states() == {}


@pytest.mark.slow
def test_publishing_costs_two_queries(shop: Shop, django_assert_num_queries: DjangoAssertNumQueries) -> None:
    for _ in range(3):
        make_endpoint(shop)
    with django_assert_num_queries(2):
        events.publish(new_event(shop))


def test_prepared_event_has_a_delivery_for_each_subscribed_endpoint(shop: Shop) -> None:
    subscriptions = [("whk_a", ["payment.succeeded"]), ("whk_b", ["payment.expired"])]
    prepared = events.prepare(new_event(shop), subscriptions)
    assert [getattr(row, "endpoint_id", None) for row in prepared] == [None, "whk_a"]


def test_publishing_many_events_costs_three_statements(
    shop: Shop, other_shop: Shop, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    for each in (shop, other_shop, shop):
        make_endpoint(each)
    with django_assert_num_queries(3):
        events.publish_many([new_event(each) for each in (shop, other_shop) for _ in range(10)])
    assert Event.objects.count() == 20
    assert Delivery.objects.filter(endpoint__merchant=shop.merchant).count() == 20
    assert Delivery.objects.filter(endpoint__merchant=other_shop.merchant).count() == 10


def test_event_and_endpoint_of_a_delivery_are_never_deleted(shop: Shop) -> None:
    make_endpoint(shop)
    publish(shop)
    for table in ("webhooks_event", "webhooks_endpoint"):
        assert sqlstate(f"DELETE FROM {table}") == NOT_ALLOWED
        assert sqlstate(f"TRUNCATE {table} CASCADE") == NOT_ALLOWED


def test_publishing_no_events_is_allowed(shop: Shop) -> None:
    events.publish_many([])
    assert not Event.objects.exists()


def test_rolled_back_event_is_not_stored(shop: Shop) -> None:
    make_endpoint(shop)
    with transaction.atomic():
        publish(shop)
        transaction.set_rollback(True)
    assert not Event.objects.exists()
    assert not Delivery.objects.exists()


def test_unknown_event_type_raises(shop: Shop) -> None:
    with pytest.raises(ValueError, match=r"payment\.paid"):
        publish(shop, "payment.paid")
    assert not Endpoint.objects.exists()


@pytest.mark.slow
def test_publishing_many_events_to_many_endpoints_creates_all_deliveries(shop: Shop) -> None:
    for _ in range(13):
        make_endpoint(shop)
    events.publish_many([new_event(shop) for _ in range(500)])
    assert Delivery.objects.count() == 13 * 500
