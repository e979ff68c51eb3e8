"""Who wants a webhook to be told again is kept with the delivery, and by which request."""

import pytest
from django.test import Client

from tests.conftest import Shop
from tests.webhooks.asking import path_of, redeliver, replay
from tests.webhooks.cast import NOW, make_endpoint, only_delivery, publish
from webhooks.models import Delivery

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("loopback", "frozen")]
TILL = {"X-Request-Id": "till-3.0042"}


def asked(resend: int = 0) -> tuple[str, str]:
    delivery = Delivery.objects.get(resend=resend)
    return delivery.asked_by, delivery.asked_request_id


def key_of(shop: Shop) -> str:
    return f"key:{shop.merchant.keys.get().public_id}"


def test_what_happens_by_itself_nobody_asked_for(shop: Shop) -> None:
    make_endpoint(shop)
    publish(shop)
    assert (asked(), only_delivery().asked_at) == (("", ""), None)


def test_a_resend_is_of_its_key_and_request_and_leaves_the_first_alone(shop: Shop) -> None:
    endpoint = make_endpoint(shop)
    publish(shop)
    redeliver(shop, endpoint, only_delivery().id, **TILL)
    assert asked(resend=1) == (key_of(shop), "till-3.0042")
    assert asked() == ("", "")


def test_staff_see_who_asked(shop: Shop, admin_client: Client) -> None:
    endpoint = make_endpoint(shop)
    publish(shop)
    redeliver(shop, endpoint, only_delivery().id)
    assert key_of(shop) in admin_client.get("/admin/webhooks/delivery/").content.decode()


def test_of_two_replays_the_last_is_kept(shop: Shop) -> None:
    endpoint = make_endpoint(shop)
    publish(shop)
    for request_id in ("first", "second"):
        Delivery.objects.update(state="failed")
        replay(shop, endpoint, NOW, **{"X-Request-Id": request_id})
        assert asked() == (key_of(shop), request_id)


def test_a_test_is_of_its_key(shop: Shop) -> None:
    shop.post(path_of(make_endpoint(shop), "test"), **TILL)
    assert asked(resend=1) == (key_of(shop), "till-3.0042")
