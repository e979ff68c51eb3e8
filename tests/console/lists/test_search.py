"""One search finds payments and all that belongs to them."""

import re
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode

import pytest
import time_machine
from django.contrib.admin.utils import quote
from django.contrib.auth.models import Permission, User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from core.console import admin_lists
from reconciliation.models import BankTransaction
from refunds.models import Refund
from tests.conftest import SandboxBankClient, Shop
from tests.console.exports.exported import rows_of, written
from tests.console.lists.query_plans import unbounded

pytestmark = pytest.mark.slow


def search(client: Client, query: str) -> Any:
    return client.get("/admin/search/?" + urlencode({"q": query}))


def payment_page(code: dict[str, str]) -> str:
    return f"/admin/payments/payment/{quote(code['payment_id'])}/change/"


def text_of(response: Any) -> str:
    assert response.status_code == 200
    return re.sub(r"\s+", " ", response.content.decode())


def test_id_leads_to_its_page(shop: Shop, bank: SandboxBankClient, admin_client: Client) -> None:
    code = shop.qr_code()
    bank.notify(code)
    assert search(admin_client, f" {code['payment_id']} ").headers["Location"] == payment_page(code)
    shop.post("/v1/refunds", {"payment_id": code["payment_id"], "amount": 100})
    refund = Refund.objects.get()
    assert search(admin_client, code["payment_id"]).headers["Location"] == payment_page(code)
    page = f"/admin/refunds/refund/{quote(refund.id)}/change/"
    assert search(admin_client, refund.id).headers["Location"] == page
    merchant = f"/admin/merchants/merchant/{quote(shop.merchant.id)}/change/"
    assert search(admin_client, shop.merchant.id).headers["Location"] == merchant


def test_id_of_a_code_finds_its_payment(shop: Shop, admin_client: Client) -> None:
    code, other = shop.qr_code(), shop.qr_code()
    assert search(admin_client, f" {code['qr_code_id']}").headers["Location"] == payment_page(code)
    for name in ("qrcodes/qrcode", "payments/payment"):
        page = text_of(admin_client.get(f"/admin/{name}/?q={code['qr_code_id']}"))
        assert (code["payment_id"] in page, other["payment_id"] in page) == (True, False)


def test_list_page_and_file_of_codes_have_their_ids(shop: Shop, admin_client: Client) -> None:
    code = shop.qr_code()
    shown = f'<span class="id" title="{code["qr_code_id"]}">'
    for page in ("", f"{quote(code['payment_id'])}/change/"):
        assert shown in text_of(admin_client.get(f"/admin/qrcodes/qrcode/{page}"))
    (row,) = rows_of(written(admin_client, list="qrcodes.qrcode"))
    assert (row["Id"], row["Payment"]) == (code["qr_code_id"], code["payment_id"])


def test_reference_that_looks_like_the_id_of_a_code_is_found(shop: Shop, admin_client: Client) -> None:
    reference = "qr_" + "1" * 27
    code = shop.qr_code(reference=reference)
    assert search(admin_client, reference).headers["Location"] == payment_page(code)
    assert code["payment_id"] in text_of(admin_client.get(f"/admin/payments/payment/?q={reference}"))


def test_reference_of_one_payment_leads_to_it(shop: Shop, admin_client: Client) -> None:
    code = shop.qr_code(reference="order 17")
    shop.qr_code(reference="order 18")
    assert search(admin_client, "order 17").headers["Location"] == payment_page(code)


@pytest.mark.parametrize("text", ["A\u201117", "\ufeffA-17\u200b", "A-๑๗", "A\u221217 "])
def test_reference_is_found_with_any_dash_and_digits(shop: Shop, admin_client: Client, text: str) -> None:
    code = shop.qr_code(reference="A-17")
    assert search(admin_client, text).headers["Location"] == payment_page(code)


def test_reference_with_a_long_dash_is_found_as_it_was_written(shop: Shop, admin_client: Client) -> None:
    code = shop.qr_code(reference="ใบสั่ง \u2013  ๑๗")
    assert search(admin_client, "ใบสั่ง \u2013  ๑๗\u200b").headers["Location"] == payment_page(code)


def test_amount_is_found_in_thai_digits(shop: Shop, admin_client: Client) -> None:
    code = shop.qr_code(amount=123_400)
    assert search(admin_client, "๑,๒๓๔\u200b").headers["Location"] == payment_page(code)


def test_reference_of_several_payments_lists_them(shop: Shop, admin_client: Client) -> None:
    codes = [shop.qr_code(reference="table 4") for _ in range(2)]
    page = text_of(search(admin_client, "table 4"))
    assert all(payment_page(code) in page for code in codes)
    assert "<h2>Payments</h2>" in page


def test_id_of_the_bank_finds_the_bank_transaction(
    shop: Shop, bank: SandboxBankClient, admin_client: Client
) -> None:
    bank.notify(shop.qr_code())
    bank_transaction = BankTransaction.objects.get()
    page = f"/admin/reconciliation/banktransaction/{quote(bank_transaction.id)}/change/"
    found = search(admin_client, bank_transaction.bank_reference)
    assert page in (found.headers.get("Location") or text_of(found))


@pytest.mark.parametrize("query", ["1998", "1,998.00", "1998.00 THB", "฿1,998"])
def test_amount_in_baht_finds_payments_and_bank_transactions(
    shop: Shop, bank: SandboxBankClient, admin_client: Client, query: str
) -> None:
    code, other = shop.qr_code(amount=199_800), shop.qr_code(amount=19_980)
    bank.notify(code)
    page = text_of(search(admin_client, query))
    assert payment_page(code) in page
    assert payment_page(other) not in page
    assert "<h2>Bank transactions</h2>" in page


def test_amount_looks_at_the_newest_rows_and_says_so(
    shop: Shop, admin_client: Client, noon: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admin_lists, "FILTERED_ROWS", 2)
    with time_machine.travel(noon, tick=False) as moved:
        codes = []
        for _ in range(3):
            codes.append(shop.qr_code(amount=199_800))
            moved.shift(timedelta(seconds=1))
        page = text_of(search(admin_client, "1998"))
    assert [payment_page(code) in page for code in codes] == [False, True, True]
    assert "the newest 2 rows" in page


@pytest.mark.parametrize(
    "query", ["", " ", "\0", "no such thing", "9" * 40, "'; DROP TABLE", "<script>", "x" * 5000, "%", "ก"]
)
def test_search_in_vain_says_how_to_search(db: None, admin_client: Client, query: str) -> None:
    page = text_of(search(admin_client, query))
    assert "Search by a whole id" in page
    assert "<script>&" not in page and "“<script>" not in page


def test_search_finds_only_what_the_user_may_view(shop: Shop) -> None:
    code = shop.qr_code(reference="order 17")
    person = User.objects.create_user("malee", is_staff=True)
    client = Client()
    client.force_login(person)
    assert "Nothing was found." in text_of(search(client, code["payment_id"]))
    person.user_permissions.add(Permission.objects.get(codename="view_payment"))
    assert search(client, code["payment_id"]).headers["Location"] == payment_page(code)
    assert Client().get("/admin/search/?q=x").status_code == 302


def test_search_reads_a_bounded_number_of_rows(admin_client: Client) -> None:
    for query in ("pay_0oK6g2e1hUFoYaGSFYfTawPygcv", "order 17", "1998.00"):
        with CaptureQueriesContext(connection) as captured:
            search(admin_client, query)
        read = [each["sql"] for each in captured if each["sql"].startswith("SELECT")]
        assert len(read) < 80
        # `test_amount_looks_at_the_newest_rows_and_says_so` checks the limit of amounts.
        for sql in (each for each in read if '"amount" = ' not in each):
            assert unbounded(sql, small=SMALL) == [], sql


# Tables that do not grow with payments.
SMALL = frozenset(
    {
        *("merchants_merchant", "merchants_apikey", "merchants_bankconnection", "webhooks_endpoint"),
        *("webhooks_endpointhealth", "approvals_payoutaccount", "approvals_payoutpolicy", "auth_user"),
        *("reconciliation_statement", "settlements_acquirertransfer", "settlements_openquestion"),
        "settlements_settlement",
    }
)
