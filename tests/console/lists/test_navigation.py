"""The menu, the forms of values in lists, and what a user without rights sees."""

import re
from datetime import datetime

import pytest
import time_machine
from django.contrib import admin
from django.contrib.admin.utils import quote
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.urls import resolve, reverse

from console.people import roles
from core.console import admin_columns
from payments.models import Payment
from tests.conftest import SandboxBankClient, Shop

PAYMENTS = "/admin/payments/payment/"


def menu_of(client: Client, path: str) -> dict[str, str]:
    """The links of the menu on this page by their text."""
    menu = client.get(path).content.decode().partition('<nav id="menu"')[2].partition("</nav>")[0]
    links = re.findall(r'<a href="([^"]+)"[^>]*>(?:<svg.*?</svg>)?\s*([^<]+)</a>', menu, re.S)
    return {text.strip(): href for href, text in links}


def client_with(*codenames: str) -> Client:
    person = User.objects.create_user("malee", is_staff=True)
    person.user_permissions.set(Permission.objects.filter(codename__in=codenames))
    client = Client()
    client.force_login(person)
    return client


def test_menu_names_each_list_once() -> None:
    named = [label for section in roles.SECTIONS for label in (*section.lists, *section.details)]
    assert len(named) == len(set(named)), "a list belongs to one section"
    registered = {model._meta.label_lower for model in admin.site._registry}
    assert set(named) <= registered


@pytest.mark.slow
def test_menu_leads_to_tasks_and_the_current_section_is_open(admin_client: Client) -> None:
    links = menu_of(admin_client, "/admin/")
    assert list(links) == [
        *("Home", "Inbox", "Payments", "Refunds", "Withdrawals", "Approvals", "Exceptions", "Settlements"),
        *("Merchants", "Webhooks", "Statements", "Audit", "Team", "System"),
    ]
    assert all(resolve(path) for path in links.values())
    assert "QR codes" not in links
    assert menu_of(admin_client, PAYMENTS)["QR codes"] == "/admin/qrcodes/qrcode/"


@pytest.mark.slow
def test_every_list_is_in_the_menu_of_its_section(admin_client: Client) -> None:
    missing = {f"/admin/{model._meta.label_lower.replace('.', '/')}/" for model in admin.site._registry}
    for section_page in menu_of(admin_client, "/admin/").values():
        missing -= set(menu_of(admin_client, section_page).values())
    assert missing == set()


def test_internals_are_in_the_last_section(admin_client: Client) -> None:
    system = menu_of(admin_client, reverse("admin:operations_heartbeat_changelist"))
    assert {"Circuit breakers", "Heartbeats"} <= set(system)


@pytest.mark.slow
def test_menu_shows_only_what_a_user_may_view(db: None) -> None:
    client = client_with("view_payment", "view_delivery")
    assert list(menu_of(client, "/admin/")) == ["Home", "Payments", "Webhooks"]
    assert menu_of(client, "/admin/")["Webhooks"] == "/admin/webhooks/delivery/"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("pay_0oK6g2e1hUFoYaGSFYfTawPygcv", "pay_…wPygcv"),
        ("evt_short", "evt_short"),
        ("sandbox", "sandbox"),
        ("SANDBOX20261121093015000042", "…000042"),
        ("3f0c2c4e-3c61-4f2e-9a55-1f6f5b1e9a10", "…1e9a10"),
        ("Somtam House and its second branch (test)", "Somtam House and its second branch (test)"),
        ("not_an_id", "not_an_id"),
        ("", ""),
    ],
)
def test_ids_are_short(value: str, shown: str) -> None:
    assert admin_columns.short_id(value) == shown


@pytest.mark.slow
def test_list_of_payments_has_short_ids_coloured_states_and_bangkok_times(
    admin_client: Client, shop: Shop, noon: datetime
) -> None:
    with time_machine.travel(noon, tick=False):
        code = shop.qr_code(amount=199_950)
        page = admin_client.get(PAYMENTS).content.decode()
    payment = Payment.objects.get(pk=code["payment_id"])
    assert f'<span class="id" title="{payment.id}">pay_…{payment.id[-6:]}</span>' in page
    assert '<span class="state wait">Pending</span>' in page
    assert "1,999.50 THB" in page
    assert noon.strftime("%Y-%m-%d 12:00:00") in page
    assert f'<a href="/admin/merchants/merchant/{shop.merchant.id.replace("_", "_5F")}/change/">' in page


@pytest.mark.slow
def test_page_of_a_refund_shows_baht_states_and_dashes(
    shop: Shop, bank: SandboxBankClient, admin_client: Client
) -> None:
    bank.notify(code := shop.qr_code(amount=99_900))
    refund = shop.post("/v1/refunds", {"payment_id": code["payment_id"], "amount": 9_900}).json()
    page = admin_client.get(f"/admin/refunds/refund/{quote(refund['refund_id'])}/change/").text
    for shown in ("99.00 THB", '<span class="state wait">Pending</span>', "the bank"):
        assert shown in page, shown
    for hidden in ("9900", "Satang.", ">None<", "core.request_context"):
        assert hidden not in page, hidden


@pytest.mark.slow
def test_list_names_the_chosen_filter_and_clears_it(admin_client: Client, shop: Shop) -> None:
    shop.qr_code()
    page = admin_client.get(f"{PAYMENTS}?status=failed").content.decode()
    assert "Status: <strong>Failed</strong>" in page
    assert "Clear all filters" in page
    assert "Nothing matches." in page
