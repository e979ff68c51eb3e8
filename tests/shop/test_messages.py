"""Destinations of messages that people of a merchant add, without a developer."""

from typing import Any

import pytest
from django.test import Client

from audit_trail.models import AuditRecord
from console.people.roles import ShopRole
from tests.conftest import Shop
from tests.shop.people import person_of, row_url
from tests.staff_acts import act_form
from webhooks.models import Delivery, Endpoint

pytestmark = pytest.mark.django_db
NEW = "/shop/webhooks/endpoint/do/add-destination/"


@pytest.fixture(autouse=True)
def mail_server(settings: Any) -> None:
    settings.EMAIL_HOST, settings.EMAIL_FROM = "mail.example", "shop@example.com"


def add(client: Client, **values: Any) -> Any:
    given = {"type": "email", "to": "malee@example.com", "events": ["payment.succeeded"], "language": "th"}
    return client.post(NEW, act_form(**given | values) | {"reason": ""}, follow=True)


def test_owner_gets_messages_tries_them_and_ends_them(shop: Shop) -> None:
    owner = person_of(shop)
    assert NEW in owner.get("/shop/webhooks/endpoint/").text
    assert "Paid</label>" in owner.get(NEW).text  # events in words
    page = add(owner)
    made = Endpoint.objects.get()
    assert (made.merchant, made.type, made.recipient) == (shop.merchant, "email", "malee@example.com")
    assert "malee@example.com" in page.text
    record = AuditRecord.objects.get(act="endpoint_added")
    assert (record.object_id, record.merchant_id) == (made.pk, shop.merchant.pk)
    act = row_url(made).replace("/change/", "/do/{}/")
    assert owner.post(act.format("test"), act_form(), follow=True).status_code == 200
    assert Delivery.objects.get().endpoint == made
    owner.post(act.format("delete"), act_form(), follow=True)
    made.refresh_from_db()
    assert made.deleted_at is not None


@pytest.mark.parametrize(
    "values",
    [
        {"to": "nobody"},
        {"to": "root@localhost"},
        {"type": "line", "to": "U1"},
        {"events": ["approval.requested"]},
        {"events": []},
        {"quiet_hours": "25:00-07:00"},
    ],
)
def test_wrong_input_adds_nothing(shop: Shop, values: dict[str, Any]) -> None:
    page = add(person_of(shop), **values)
    assert page.status_code == 200
    assert "errorlist" in page.text
    assert not Endpoint.objects.exists()


@pytest.mark.parametrize("role", [ShopRole.CASHIER, ShopRole.ACCOUNTANT, ShopRole.MANAGER])
def test_others_add_none(shop: Shop, role: ShopRole) -> None:
    assert add(person_of(shop, role)).status_code == 403
    assert not Endpoint.objects.exists()
