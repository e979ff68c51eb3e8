"""Malformed URLs of console pages never cause an internal error."""

import pytest
from django.contrib import admin
from django.test import Client
from django.urls import reverse

from payments.models import Payment
from reconciliation.exceptions import actions
from reconciliation.models import BankTransaction
from tests.conftest import SandboxBankClient, Shop
from tests.examples import FACTOR
from tests.reconciliation.builders import EXCEPTIONS_URL, Seller
from webhooks.models import Delivery

MALFORMED = [
    "%00", "_00", "a%00b", "rcp_%00", "pay_" + "0" * 26 + "%00", "%E0%B8%AA%E0%B8%A1", "%F0%9F%92%A9", "..",
    "a" * 5_000, "9" * 5_000,
]  # fmt: skip
PAGES = ["change", "history", "delete"]


@pytest.mark.parametrize("malformed", MALFORMED)
@pytest.mark.slow
def test_malformed_id_in_admin_url_is_404(admin_client: Client, malformed: str) -> None:
    """Each page of each model gets every third id, or all with EXAMPLES_FACTOR=1."""
    admin_client.raise_request_exception = False
    for number, model in enumerate(admin.site._registry, MALFORMED.index(malformed)):
        listed = reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")
        for page in PAGES if FACTOR >= 1 else [PAGES[number % len(PAGES)]]:
            response = admin_client.get(f"{listed}{malformed}/{page}/")
            assert response.status_code in (302, 403, 404), (model, page)
            # Each redirect adds a message, which no page shows. Collecting them takes longer than the pages.
            admin_client.cookies.pop("messages", None)


@pytest.mark.parametrize("malformed", MALFORMED)
def test_admin_view_on_site_is_404(admin_client: Client, malformed: str) -> None:
    assert admin_client.get(f"/admin/r/1/{malformed}/").status_code == 404


@pytest.mark.parametrize("malformed", MALFORMED)
@pytest.mark.slow
def test_malformed_exception_id_is_404(admin_client: Client, malformed: str) -> None:
    admin_client.raise_request_exception = False
    assert admin_client.get(f"{EXCEPTIONS_URL}{malformed}/change/").status_code == 404
    for slug in [*actions.ACTIONS_BY_SLUG, "%00"]:
        assert admin_client.get(f"{EXCEPTIONS_URL}{malformed}/act/{slug}/").status_code == 404
        assert admin_client.post(f"{EXCEPTIONS_URL}{malformed}/act/{slug}/", {"note": "x"}).status_code == 404


@pytest.mark.parametrize("malformed", MALFORMED)
@pytest.mark.slow
def test_malformed_payment_id_cannot_be_attached(
    shop: Shop, bank: SandboxBankClient, admin_client: Client, malformed: str
) -> None:
    page = f"{EXCEPTIONS_URL}{Seller(shop, bank).unmatched().id}"
    response = admin_client.get(f"{page}/act/attach/?payment={malformed}", follow=True)
    assert "There is no payment with this id." in response.content.decode()


@pytest.mark.parametrize("malformed", MALFORMED)
@pytest.mark.slow
def test_malformed_id_in_list_filter_is_ignored(admin_client: Client, malformed: str) -> None:
    admin_client.raise_request_exception = False
    for query in ("q", "claimed_payment_id", "statement__id__exact", "bank", "merchant__id__exact"):
        for listed in ("slipcheck", "statementline", "reconciliationexception"):
            response = admin_client.get(f"/admin/reconciliation/{listed}/?{query}={malformed}", follow=True)
            assert response.status_code == 200, (listed, query)


@pytest.mark.parametrize("lookup", ["{}__year=99999", "{}__year=0", "id__regex=(", "id__iregex=("])
def test_unsafe_lookup_in_admin_url_is_400(admin_client: Client, lookup: str) -> None:
    for model, when in ((BankTransaction, "received_at"), (Payment, "created_at"), (Delivery, "created_at")):
        listed = reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")
        assert admin_client.get(f"{listed}?{lookup.format(when)}").status_code == 400


NO_COLUMN_HOLDS = "9" * 20


@pytest.mark.django_db(transaction=True)
def test_number_beyond_64_bits_in_admin_url_is_refused(admin_client: Client) -> None:
    admin_client.raise_request_exception = False
    for listed in ("payments/payment", "reconciliation/banktransaction", "approvals/approval"):
        response = admin_client.get(f"/admin/{listed}/?amount__in={NO_COLUMN_HOLDS}")
        assert (response.status_code, response["Location"]) == (302, f"/admin/{listed}/?e=1"), listed
