"""Pages of the console show names, accounts and messages of customers only with the permission."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.admin.utils import quote
from django.contrib.auth.models import User
from django.test import Client, RequestFactory
from django.urls import reverse
from pytest_django import Settings

from approvals.models import Approval
from audit_trail.acts import Act
from audit_trail.models import AuditRecord
from audit_trail.pages import ReadOnlyAdmin
from core import request_context
from core.console import personal_data
from payments.models import Payment
from reconciliation.models import BankNotification, BankTransaction, ReconciliationException
from tests.conftest import SandboxBankClient, Shop
from tests.reconciliation.builders import staff_client
from tests.withdrawals.builders import withdrawn
from transfers.models import Transfer
from webhooks.models import Event
from withdrawals.models import Withdrawal

pytestmark = pytest.mark.slow

NAME, ACCOUNT = "Malee Srisuk", "4051234567"
SEES = "view_personal_data"


def view_permissions() -> list[str]:
    return [f"view_{model._meta.model_name}" for model in admin.site._registry]


@pytest.fixture
def clerk(db: None) -> Client:
    """Sees all pages, and no personal data."""
    return staff_client("somsri", *view_permissions())


@pytest.fixture
def manager(db: None) -> Client:
    return staff_client("malee", *view_permissions(), SEES)


@pytest.fixture
def rows(shop: Shop, bank: SandboxBankClient, settings: Settings) -> Callable[[Any], Any]:
    """The newest row of a model, in a shop with personal data in all tables that have some."""
    settings.APPROVAL_ITEM_LIMIT = 100
    code = shop.qr_code(client_name=NAME, client_bank_account=ACCOUNT)
    bank.notify(code, payer_name=NAME, payer_account=ACCOUNT)
    bank.notify(shop.qr_code(), reference1="NOBODYKNOWSTHIS00000", payer_name=NAME, payer_account=ACCOUNT)
    withdrawn(shop, amount=101, account_name=NAME, bank_account=ACCOUNT)
    return lambda model: model._default_manager.latest("pk")


def page_of(row: Any) -> str:
    return reverse(f"admin:{row._meta.app_label}_{row._meta.model_name}_change", args=[quote(row.pk)])


MODELS = [
    Payment, BankTransaction, BankNotification, ReconciliationException, Withdrawal, Transfer, Approval,
    Event,
]  # fmt: skip


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_page_hides_personal_data_without_the_permission(
    rows: Callable[[Any], Any], clerk: Client, manager: Client, model: Any
) -> None:
    shown = [page_of(row) for row in model._default_manager.all()]
    texts = [client.get(page).content.decode() for client in (clerk, manager) for page in shown]
    hidden, whole = "".join(texts[: len(shown)]), "".join(texts[len(shown) :])
    assert NAME in whole or ACCOUNT[-4:] in whole, model
    assert NAME not in hidden
    assert not re.search(rf"x+{ACCOUNT[-4:]}|\.\.\.{ACCOUNT[-4:]}", hidden)
    viewers = AuditRecord.objects.filter(act=Act.VIEWED).values_list("actor", flat=True)
    assert set(viewers) == {"staff:malee"}


@pytest.mark.parametrize("model", [Withdrawal, Approval, Payment], ids=lambda model: model.__name__)
def test_list_hides_the_end_of_accounts_without_the_permission(
    rows: Callable[[Any], Any], clerk: Client, manager: Client, model: Any
) -> None:
    url = reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")
    assert f">{ACCOUNT[-4:]}<" not in clerk.get(url).content.decode()
    assert f"...{ACCOUNT[-4:]}" not in clerk.get(url).content.decode()


def test_search_of_all_lists_hides_the_end_of_accounts(
    rows: Callable[[Any], Any], clerk: Client, manager: Client
) -> None:
    for client, is_shown in ((clerk, False), (manager, True)):
        text = client.get("/admin/search/", {"q": "1.01"}, follow=True).content.decode()
        assert (ACCOUNT[-4:] in text) == is_shown


def test_acts_get_whole_names_also_from_staff_who_may_not_see_them(shop: Shop, admin_user: User) -> None:
    code = shop.qr_code(client_name=NAME)
    payments: Any = admin.site._registry[Payment]
    request = RequestFactory().get("/")
    request.user = admin_user
    request_context.set_actor("staff:somsri", hides_personal_data=True)
    payment = payments.get_object(request, code["payment_id"])
    assert payment.client_name == NAME
    assert personal_data.conceal(payment).client_name == "M*** S***"
    request_context.begin()


def test_page_hides_personal_data_of_a_row_that_is_given_by_position(shop: Shop, admin_user: User) -> None:
    code = shop.qr_code(client_name=NAME)
    page: Any = admin.site._registry[Payment]
    request = RequestFactory().get("/")
    request.user = admin_user
    request_context.set_actor("staff:somsri", hides_personal_data=True)
    payment = page.get_object(request, code["payment_id"])
    context = page.change_view(request, payment.pk).context_data
    ReadOnlyAdmin.render_change_form(page, request, context, False, True, "", payment)
    assert payment.client_name == "M*** S***"
    request_context.begin()


def test_concealed_row_keeps_other_columns(shop: Shop) -> None:
    code = shop.qr_code(client_name=NAME)
    payment = Payment.objects.get(pk=code["payment_id"])
    assert personal_data.conceal(payment).client_name == NAME
    assert personal_data.masked_name("  สมชาย  ใจดี ") == "ส*** จ***"
    assert personal_data.masked_name("เปรม แก้ว โชค ไหม น้ำ อึ๋ม เ") == "ป*** ก้*** ช*** ห*** น้*** อึ๋*** เ***"
    assert personal_data.masked_name("Rene\u0301e E\u0301mile \u200bÅsa") == "R*** É*** Å***"
    assert personal_data.account(ACCOUNT) == "xxxxxx4567"
