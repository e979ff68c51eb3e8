"""Payment links that people of a merchant make, without a developer."""

from typing import Any

import pytest
from django.test import Client

from audit_trail.models import AuditRecord
from console.people.roles import ShopRole
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
    make(person_of(shop), amount_min="20", amount_max="5000", max_payments="", last_day="")
    link = PaymentLink.objects.get()
    assert (link.amount, link.amount_min, link.amount_max, link.max_payments) == (None, 2_000, 500_000, None)


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({}, "Enter an amount, or both"),
        ({"amount": "1", "amount_min": "1", "amount_max": "2"}, "Enter an amount, or both"),
        ({"amount_min": "5"}, "Enter an amount, or both"),
        ({"amount_min": "5", "amount_max": "4"}, "at least the smallest"),
        ({"amount": "0.50"}, "Enter an amount in baht"),
        ({"amount": "many"}, "Enter an amount in baht"),
        ({"amount": "5", "last_day": "2020-01-01"}, "today or later"),
        ({"amount": "5", "last_day": "2999-01-01"}, "today or later"),
        ({"amount": "5", "max_payments": "0"}, "greater than or equal to 1"),
        ({"amount": "5", "reference": "x" * 36}, "at most 35"),
    ],
)
def test_wrong_input_is_named_and_makes_no_link(shop: Shop, values: dict[str, str], text: str) -> None:
    page = make(person_of(shop), **{"max_payments": "1"} | values)
    assert page.status_code == 200
    assert text in page.text
    assert not PaymentLink.objects.exists()


@pytest.mark.parametrize("role", [ShopRole.CASHIER, ShopRole.ACCOUNTANT, ShopRole.DEVELOPER])
def test_only_owners_and_managers_make_links(shop: Shop, role: ShopRole) -> None:
    assert make(person_of(shop, role), amount="5").status_code == 403
    assert not PaymentLink.objects.exists()
