"""Payment links that people of a merchant make, without a developer."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from audit_trail.models import AuditRecord
from console.people.roles import ShopRole
from core import clock
from links.models import PaymentLink
from tests.conftest import SandboxBankClient, Shop
from tests.shop.people import person_of
from tests.staff_acts import act_form

pytestmark = pytest.mark.django_db
NEW = "/shop/links/paymentlink/do/new/"


def make(client: Client, **values: Any) -> Any:
    return client.post(NEW, act_form(**values) | {"reason": ""}, follow=True)


def test_owner_makes_a_link_that_a_customer_pays(shop: Shop, bank: SandboxBankClient) -> None:
    owner = person_of(shop)
    assert NEW in owner.get("/shop/links/paymentlink/").text
    assert owner.get(NEW).status_code == 200
    page = make(owner, amount="1,500", description="Rent", reference="INV-7", max_payments="1")
    link = PaymentLink.objects.get()
    assert (link.merchant, link.amount, link.reference, link.max_payments) == (
        shop.merchant, 150_000, "INV-7", 1
    )  # fmt: skip
    assert link.url in page.text
    record = AuditRecord.objects.get(act="link_created")
    assert (record.object_id, record.merchant_id) == (link.id, shop.merchant.pk)
    visitor = Client()
    shown = visitor.post(f"/pay/links/{link.id}", follow=True)
    assert "\u0e3f1,500.00" in shown.text
    (payment,) = shop.get("/v1/payments").json()["payments"]
    assert payment["payment_link_id"] == link.id
    bank.notify(shop.get(f"/v1/qr-codes/{payment['qr_code_id']}").json())
    assert "1 / 1" in owner.get("/shop/links/paymentlink/").text


def test_link_for_the_counter_takes_any_amount_any_number_of_times(shop: Shop) -> None:
    make(person_of(shop), amount_min="20", amount_max="5000", max_payments="", expires_at="")
    link = PaymentLink.objects.get()
    assert (link.amount, link.amount_min, link.amount_max, link.max_payments) == (None, 2_000, 500_000, None)


@pytest.mark.parametrize(
    ("values", "name", "text"),
    [
        ({}, "amount", "is needed, or both limits"),
        ({"amount": "1", "amount_min": "1", "amount_max": "2"}, "amount", "is needed, or both limits"),
        ({"amount_min": "5"}, "amount_max", "is needed with the other limit"),
        ({"amount_max": "5"}, "amount_min", "is needed with the other limit"),
        ({"amount_min": "5", "amount_max": "4"}, "amount_max", "at least the smallest"),
        ({"amount": "0.50"}, "amount", "Enter an amount in baht"),
        ({"amount": "many"}, "amount", "Enter an amount in baht"),
        ({"amount": "5", "expires_at": "2020-01-01"}, "expires_at", "after now, and within 366 days"),
        ({"amount": "5", "expires_at": "2099-01-01"}, "expires_at", "after now, and within 366 days"),
        ({"amount": "5", "expires_at": "0001-01-01"}, "expires_at", "after now, and within 366 days"),
        ({"amount": "5", "expires_at": "9999-12-31"}, "expires_at", "after now, and within 366 days"),
        ({"amount": "5", "expires_at": "2569-12-31"}, "expires_at", "Gregorian"),
        ({"amount": "5", "max_payments": "0"}, "max_payments", "greater than or equal to 1"),
        ({"amount": "5", "reference": "x" * 36}, "reference", "35"),
        ({"amount": "5", "description": "x" * 256}, "description", "255"),
    ],
)
def test_wrong_input_is_named_and_makes_no_link(
    shop: Shop, values: dict[str, str], name: str, text: str
) -> None:
    page = make(person_of(shop), **{"max_payments": "1"} | values)
    assert page.status_code == 200
    ((field, faults),) = page.context["form"].errors.items()
    assert field == name
    assert text in str(faults)
    assert not PaymentLink.objects.exists()


def test_link_ends_with_its_last_day_in_bangkok(shop: Shop) -> None:
    day = (clock.now().astimezone(clock.BANGKOK) + timedelta(days=3)).date()
    make(person_of(shop), amount="5", max_payments="1", expires_at=str(day))
    ends = PaymentLink.objects.get().expires_at.astimezone(clock.BANGKOK)
    assert (ends.date(), (ends + timedelta(milliseconds=1)).date()) == (day, day + timedelta(days=1))


@pytest.mark.parametrize("role", [ShopRole.CASHIER, ShopRole.ACCOUNTANT, ShopRole.DEVELOPER])
def test_only_owners_and_managers_make_links(shop: Shop, role: ShopRole) -> None:
    assert make(person_of(shop, role), amount="5").status_code == 403
    assert not PaymentLink.objects.exists()
