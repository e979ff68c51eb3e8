"""Live and test money are never on one page: one switch for lists, pages, exports and the search."""

import re

import pytest
from django.test import Client

from tests.conftest import SandboxBankClient, Shop, open_shop
from tests.console.exports.exported import rows_of, written
from tests.reconciliation.builders import Seller

PAYMENTS = "/admin/payments/payment/"


@pytest.fixture
def live(db: None) -> Shop:
    return open_shop("Khao Soi", mode="live")


def band(client: Client, path: str = "/admin/") -> str:
    """The mode that the page shows in its band."""
    answer = client.get(path, follow=True)
    assert answer.status_code == 200, path
    (mode,) = re.findall(r'<p class="mode (\w+)">', answer.text)
    return str(mode)


def test_live_is_shown_first_and_the_session_keeps_the_switch(
    admin_client: Client, shop: Shop, live: Shop
) -> None:
    code = shop.qr_code()["payment_id"]
    assert band(admin_client) == "live"
    assert code not in admin_client.get(PAYMENTS).text
    assert band(admin_client, f"{PAYMENTS}?mode=test") == "test"
    assert code in admin_client.get(PAYMENTS).text
    assert band(admin_client) == "test"


def test_console_with_test_merchants_only_shows_them(admin_client: Client, shop: Shop) -> None:
    assert band(admin_client) == "test"
    assert shop.qr_code()["payment_id"] in admin_client.get(PAYMENTS).text


def test_page_of_a_row_switches_to_its_mode(admin_client: Client, shop: Shop, live: Shop) -> None:
    code = shop.qr_code()["payment_id"]
    assert band(admin_client) == "live"
    assert band(admin_client, f"{PAYMENTS}{code}/change/".replace("_", "_5F")) == "test"
    assert code in admin_client.get(PAYMENTS).text
    merchant = f"/admin/merchants/merchant/{live.merchant.id}/change/".replace("_", "_5F")
    assert band(admin_client, merchant) == "live"


@pytest.mark.slow
def test_money_that_waits_is_of_one_mode(
    admin_client: Client, shop: Shop, live: Shop, bank: SandboxBankClient
) -> None:
    waits = Seller(shop, bank).mismatch(149_900)
    for path in ("reconciliation/reconciliationexception", "reconciliation/banktransaction"):
        assert waits.id not in admin_client.get(f"/admin/{path}/?mode=live").text
        assert waits.id in admin_client.get(f"/admin/{path}/?mode=test").text
    page = f"/admin/reconciliation/reconciliationexception/{waits.id}/change/".replace("_", "_5F")
    admin_client.get(f"{PAYMENTS}?mode=live")
    assert band(admin_client, page) == "test"


def test_search_finds_rows_of_one_mode(admin_client: Client, shop: Shop, live: Shop) -> None:
    reference = "table 7"
    code = shop.qr_code(reference=reference)["payment_id"]
    search = f"/admin/search/?q={reference}"
    assert code not in admin_client.get(f"{search}&mode=live").text
    assert code in admin_client.get(f"{search}&mode=test", follow=True).text


@pytest.mark.slow
def test_export_has_rows_of_the_mode_of_its_list(admin_client: Client, shop: Shop, live: Shop) -> None:
    code = shop.qr_code()["payment_id"]
    for mode, expected in (("live", []), ("test", [code])):
        query = admin_client.get(f"{PAYMENTS}?mode={mode}").context["export"]["query"]
        assert [row["Id"] for row in rows_of(written(admin_client, query=query))] == expected
