"""Who wants a webhook to be told again is kept with the delivery, and by which request."""

import pytest
from django.test import Client

from tests.conftest import Shop
from tests.webhooks.api_calls import key_of, redeliver, replay, webhook_path
from tests.webhooks.builders import NOW, make_endpoint, only_delivery, publish
from webhooks.models import Delivery

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("loopback", "frozen")]
TILL = {"X-Request-Id": "till-3.0042"}


def actor_and_request_id(manual_number: int = 0) -> tuple[str, str]:
    delivery = Delivery.objects.get(manual_number=manual_number)
    return delivery.actor, delivery.request_id


def test_scheduled_delivery_has_no_actor(shop: Shop) -> None:
    make_endpoint(shop)
    publish(shop)
    assert (actor_and_request_id(), only_delivery().requested_at) == (("", ""), None)


def test_redelivery_records_api_key_and_request_id(shop: Shop) -> None:
    endpoint = make_endpoint(shop)
    publish(shop)
    redeliver(shop, endpoint, only_delivery().id, **TILL)
    assert actor_and_request_id(manual_number=1) == (key_of(shop), "till-3.0042")
    assert actor_and_request_id() == ("", "")


def test_delivery_list_of_staff_shows_actor(shop: Shop, admin_client: Client) -> None:
    endpoint = make_endpoint(shop)
    publish(shop)
    redeliver(shop, endpoint, only_delivery().id)
    assert key_of(shop) in admin_client.get("/admin/webhooks/delivery/").content.decode()


def test_delivery_records_actor_of_last_replay(shop: Shop) -> None:
    endpoint = make_endpoint(shop)
    publish(shop)
    for request_id in ("first", "second"):
        Delivery.objects.update(state="failed")
        replay(shop, endpoint, NOW, **{"X-Request-Id": request_id})
        assert actor_and_request_id() == (key_of(shop), request_id)


def test_test_request_records_api_key(shop: Shop) -> None:
    shop.post(webhook_path(make_endpoint(shop), "test"), **TILL)
    assert actor_and_request_id(manual_number=1) == (key_of(shop), "till-3.0042")
