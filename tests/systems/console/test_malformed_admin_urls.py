"""Malformed URLs of console pages never cause an internal error."""

from itertools import cycle, repeat
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth.models import User
from django.test import Client, RequestFactory
from django.urls import reverse

from payments.models import Payment
from reconciliation.exceptions.exception_acts import EXCEPTION_ACTS
from reconciliation.models import BankTransaction
from tests.conftest import SandboxBankClient, Shop
from tests.examples import FACTOR
from tests.reconciliation.builders import EXCEPTIONS_URL, Seller
from tests.staff_acts import act_form
from webhooks.models import Delivery

MALFORMED = [
    "%00", "_00", "a%00b", "btx_%00", "pay_" + "0" * 26 + "%00", "%E0%B8%AA%E0%B8%A1", "%F0%9F%92%A9", "..",
    "a" * 5_000, "9" * 5_000,
]  # fmt: skip
PAGES = ["change", "history", "delete"]


@pytest.mark.slow
def test_malformed_id_in_admin_url_is_404(admin_client: Client) -> None:
    """Each page of each model gets one id in turn, or all with EXAMPLES_FACTOR=1."""
    admin_client.raise_request_exception = False
    turn = cycle([malformed] for malformed in MALFORMED) if FACTOR < 1 else repeat(MALFORMED)
    for model in admin.site._registry:
        listed = reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")
        for page in PAGES:
            for malformed in next(turn):
                response = admin_client.get(f"{listed}{malformed}/{page}/")
                assert response.status_code in (302, 403, 404), (model, page, malformed)
                # Each redirect adds a message, which no page shows. Collecting them takes longer.
                admin_client.cookies.pop("messages", None)


@pytest.mark.parametrize("malformed", MALFORMED)
def test_admin_view_on_site_is_404(admin_client: Client, malformed: str) -> None:
    assert admin_client.get(f"/admin/r/1/{malformed}/").status_code == 404


@pytest.mark.slow
def test_malformed_exception_id_is_404(admin_client: Client) -> None:
    """Each act gets one id in turn, or all with EXAMPLES_FACTOR=1."""
    admin_client.raise_request_exception = False
    for malformed in MALFORMED:
        assert admin_client.get(f"{EXCEPTIONS_URL}{malformed}/change/").status_code == 404
    turn = cycle([malformed] for malformed in MALFORMED) if FACTOR < 1 else repeat(MALFORMED)
    for act in EXCEPTION_ACTS:
        for malformed in next(turn):
            page = f"{EXCEPTIONS_URL}{malformed}/do/{act.slug}/"
            assert admin_client.get(page).status_code == 404
            assert admin_client.post(page, act_form()).status_code == 404


@pytest.mark.slow
def test_malformed_payment_id_cannot_be_attached(
    shop: Shop, bank: SandboxBankClient, admin_client: Client
) -> None:
    page = f"{EXCEPTIONS_URL}{Seller(shop, bank).unmatched().id}"
    for malformed in MALFORMED:
        response = admin_client.get(f"{page}/do/attach/?payment_id={malformed}", follow=True)
        assert "There is no payment with this id." in response.content.decode(), malformed


@pytest.mark.slow
def test_malformed_value_of_a_filter_never_fails(admin_client: Client, admin_user: User) -> None:
    """Each filter of each list gets one value in turn, or all with EXAMPLES_FACTOR=1."""
    admin_client.raise_request_exception = False
    request = RequestFactory().get("/")
    request.user = admin_user
    turn = cycle([value] for value in MALFORMED) if FACTOR < 1 else repeat(MALFORMED)
    lists: dict[Any, Any] = admin.site._registry
    for model, page in lists.items():
        listed = reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")
        specs = page.get_changelist_instance(request).filter_specs
        names = {"q", "o", "p", *page.indexed_filters}.union(*(each.expected_parameters() for each in specs))
        for name in sorted(filter(None, names)):
            for value in next(turn):
                response = admin_client.get(f"{listed}?{name}={value}")
                assert response.status_code in (200, 302), (listed, name, value)
                admin_client.cookies.pop("messages", None)


@pytest.mark.parametrize("lookup", ["{}__year=99999", "{}__year=0", "id__regex=(", "amount__in=1"])
def test_undeclared_lookup_in_admin_url_is_400(admin_client: Client, lookup: str) -> None:
    for model, when in ((BankTransaction, "received_at"), (Payment, "created_at"), (Delivery, "created_at")):
        listed = reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")
        assert admin_client.get(f"{listed}?{lookup.format(when)}").status_code == 400
