"""Whatever somebody writes into the address of a page of the console: nothing of ours fails."""

import pytest
from django.contrib import admin
from django.test import Client
from django.urls import reverse

from payments.models import Payment
from receipts import ways
from receipts.models import Receipt
from tests.conftest import BankCaller, Shop
from tests.receipts.staff import LIST, Odd
from webhooks.models import Delivery

ODD = [
    "%00", "_00", "a%00b", "rcp_%00", "pay_" + "0" * 26 + "%00", "%E0%B8%AA%E0%B8%A1", "%F0%9F%92%A9", "..",
    "a" * 5_000, "9" * 5_000,
]  # fmt: skip
PAGES = ["change", "history", "delete"]


@pytest.mark.parametrize("odd", ODD)
def test_no_page_fails_at_an_odd_id(admin_client: Client, odd: str) -> None:
    admin_client.raise_request_exception = False
    for model in admin.site._registry:
        listed = reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")
        for page in PAGES:
            answer = admin_client.get(f"{listed}{odd}/{page}/")
            assert answer.status_code in (302, 403, 404), (model, page)


@pytest.mark.parametrize("odd", ODD)
def test_nothing_is_viewed_on_a_site_that_is_not_there(admin_client: Client, odd: str) -> None:
    assert admin_client.get(f"/admin/r/1/{odd}/").status_code == 404


@pytest.mark.parametrize("odd", ODD)
def test_there_is_no_exception_of_an_odd_id(admin_client: Client, odd: str) -> None:
    admin_client.raise_request_exception = False
    assert admin_client.get(f"{LIST}{odd}/change/").status_code == 404
    for slug in [*ways.BY_SLUG, "%00"]:
        assert admin_client.get(f"{LIST}{odd}/act/{slug}/").status_code == 404
        assert admin_client.post(f"{LIST}{odd}/act/{slug}/", {"why": "x"}).status_code == 404


@pytest.mark.parametrize("odd", ODD)
def test_nothing_is_attached_to_an_odd_payment(
    shop: Shop, bank: BankCaller, admin_client: Client, odd: str
) -> None:
    page = f"{LIST}{Odd(shop, bank).unmatched().id}"
    answer = admin_client.get(f"{page}/act/attach/?payment={odd}", follow=True)
    assert "There is no payment of this id." in answer.content.decode()


@pytest.mark.parametrize("odd", ODD)
def test_no_list_fails_at_an_odd_id(admin_client: Client, odd: str) -> None:
    admin_client.raise_request_exception = False
    for query in ("q", "shown_for", "statement__id__exact", "bank", "merchant__id__exact"):
        for listed in ("slipcheck", "statementline", "waiting"):
            answer = admin_client.get(f"/admin/receipts/{listed}/?{query}={odd}", follow=True)
            assert answer.status_code == 200, (listed, query)


@pytest.mark.parametrize("lookup", ["{}__year=99999", "{}__year=0", "id__regex=(", "id__iregex=("])
def test_a_lookup_that_would_fail_is_refused(admin_client: Client, lookup: str) -> None:
    for model, when in ((Receipt, "received_at"), (Payment, "created_at"), (Delivery, "created_at")):
        listed = reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")
        assert admin_client.get(f"{listed}?{lookup.format(when)}").status_code == 400


NO_COLUMN_HOLDS = "9" * 20


@pytest.mark.django_db(transaction=True)
def test_a_number_beyond_64_bits_in_the_address_of_a_list_is_refused(admin_client: Client) -> None:
    admin_client.raise_request_exception = False
    for listed in ("payments/payment", "receipts/receipt", "approvals/approval"):
        answer = admin_client.get(f"/admin/{listed}/?amount__in={NO_COLUMN_HOLDS}")
        assert (answer.status_code, answer["Location"]) == (302, f"/admin/{listed}/?e=1"), listed
