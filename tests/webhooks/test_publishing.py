"""What happened is written down in the commit in which it happened, with whom to tell."""

import orjson
import pytest
from django.db import transaction
from pytest_django import DjangoAssertNumQueries

from core import rows
from tests.conftest import Shop
from tests.webhooks.cast import NOW, PAID, happening, make_endpoint
from webhooks import endpoints, events, settling
from webhooks.models import Delivery, Endpoint, EndpointStatus, Event

pytestmark = pytest.mark.django_db


def publish(shop: Shop, type: str = PAID) -> Event:
    told = happening(shop, type=type)
    events.publish(told)
    event: Event = Event.objects.get(subject_id=told.subject_id)
    return event


def states() -> dict[str, str]:
    return dict(Delivery.objects.values_list("endpoint_id", "state"))


def test_the_body_is_compact_json_that_names_the_event(shop: Shop) -> None:
    told = happening(shop, metadata={"table": 7, "ชื่อ": "ก"})
    events.publish(told)
    event = Event.objects.get()
    body = {"event": PAID, "event_id": event.id, "data": told.data, "timestamp": "2026-11-21T03:04:05.123Z"}
    assert bytes(event.body) == orjson.dumps(body)
    assert event.id.startswith("evt_")


def test_an_event_without_listeners_is_kept(shop: Shop) -> None:
    assert publish(shop).merchant_id == shop.merchant.id
    assert states() == {}


def test_only_subscribers_of_the_same_merchant_are_told(shop: Shop, rival: Shop) -> None:
    make_endpoint(rival)
    make_endpoint(shop, events=["refund.failed"])
    subscriber = make_endpoint(shop, events=["refund.failed", PAID])
    event = publish(shop)
    delivery = Delivery.objects.get()
    assert (delivery.endpoint_id, delivery.event_id) == (subscriber.id, event.id)
    assert (delivery.state, delivery.attempts, delivery.due_at) == ("pending", 0, NOW)


def test_a_disabled_endpoint_finds_its_events_held(shop: Shop) -> None:
    endpoint = make_endpoint(shop, status=EndpointStatus.DISABLED)
    publish(shop)
    settling.settle_left(now=NOW)
    assert states() == {endpoint.id: "held"}


def test_an_endpoint_enabled_while_something_happens_is_told_of_it(shop: Shop) -> None:
    endpoint = make_endpoint(shop, status=EndpointStatus.DISABLED)
    told = events.draft(happening(shop))
    endpoints.enable(endpoint_id=endpoint.id, actor="merchant", now=NOW)
    rows.insert_together(told)
    settling.settle_left(now=NOW)
    assert states() == {endpoint.id: "pending"}
    assert events.rings(told)


def test_a_deleted_endpoint_is_told_nothing(shop: Shop) -> None:
    make_endpoint(shop, deleted_at=NOW)
    publish(shop)
    assert states() == {}


def test_a_draft_costs_one_query_and_publishing_one_more(
    shop: Shop, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    for _ in range(3):
        make_endpoint(shop)
    with django_assert_num_queries(1):
        told = events.draft(happening(shop))
    assert [type(row) for row in told] == [Event, Delivery, Delivery, Delivery]
    assert events.rings(told)
    with django_assert_num_queries(2):
        events.publish(happening(shop))


def test_a_sweep_publishes_many_by_three_statements(
    shop: Shop, rival: Shop, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    for each in (shop, rival, shop):
        make_endpoint(each)
    with django_assert_num_queries(3):
        events.publish_many([happening(each) for each in (shop, rival) for _ in range(10)])
    assert Event.objects.count() == 20
    assert Delivery.objects.filter(endpoint__merchant=shop.merchant).count() == 20
    assert Delivery.objects.filter(endpoint__merchant=rival.merchant).count() == 10


def test_publishing_nothing_is_no_error(shop: Shop) -> None:
    events.publish_many([])
    assert not Event.objects.exists()


def test_what_is_rolled_back_was_never_told(shop: Shop) -> None:
    make_endpoint(shop)
    with transaction.atomic():
        publish(shop)
        transaction.set_rollback(True)
    assert not Event.objects.exists()
    assert not Delivery.objects.exists()


def test_a_type_that_is_not_in_the_catalogue_is_a_mistake_of_ours(shop: Shop) -> None:
    with pytest.raises(ValueError, match=r"payment\.paid"):
        publish(shop, "payment.paid")
    assert not Endpoint.objects.exists()


def test_a_sweep_may_tell_many_endpoints_of_much(shop: Shop) -> None:
    for _ in range(13):
        make_endpoint(shop)
    events.publish_many([happening(shop) for _ in range(500)])
    assert Delivery.objects.count() == 13 * 500
