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

from audit_trail.acts import Act
from audit_trail.models import AuditRecord
from console.lists import search as search_page
from core.console import admin_lists, admin_search
from core.http.rate_limits import RateLimit
from reconciliation.models import BankTransaction
from refunds.models import ClaimLink, Refund
from tests.conftest import SandboxBankClient, Shop
from tests.console.exports.exported import rows_of, written
from tests.console.lists.query_plans import unbounded
from tests.reconciliation.builders import staff_client
from tests.refunds.builders import NOBODY, RefundShop

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
    assert "among the newest 2." in page


@pytest.mark.parametrize(
    "query", ["", " ", "\0", "no such thing", "9" * 40, "'; DROP TABLE", "<script>", "x" * 5000, "%", "ก"]
)
def test_search_in_vain_says_how_to_search(db: None, admin_client: Client, query: str) -> None:
    page = text_of(search(admin_client, query))
    assert "Search by an id or a reference" in page
    assert "<script>&" not in page and "“<script>" not in page


def test_search_finds_only_what_the_user_may_view(shop: Shop) -> None:
    code = shop.qr_code(reference="order 17")
    person = User.objects.create_user("malee", is_staff=True)
    client = Client()
    client.force_login(person)
    assert search(client, code["payment_id"]).status_code == 403
    assert "global-search" not in client.get("/admin/").content.decode()
    person.user_permissions.add(Permission.objects.get(codename="view_payment"))
    assert search(client, code["payment_id"]).headers["Location"] == payment_page(code)
    assert Client().get("/admin/search/?q=x").status_code == 302


@pytest.mark.parametrize("query", ["1998 บาท", "1,998.00 บาท", "฿1,998.00", "1998"])
def test_list_of_payments_takes_an_amount_as_the_header_does(
    shop: Shop, admin_client: Client, query: str
) -> None:
    code, other = shop.qr_code(amount=199_800), shop.qr_code(amount=19_980)
    page = text_of(admin_client.get("/admin/payments/payment/", {"q": query}))
    assert (code["payment_id"] in page, other["payment_id"] in page) == (True, False)
    assert "Search by id, reference, bank reference" in page
    assert "the payer&#x27;s name" in page


def test_id_is_found_in_any_case_and_by_its_beginning(shop: Shop, admin_client: Client) -> None:
    code = shop.qr_code()
    key = code["payment_id"]
    for query in (key.upper(), key.lower(), key[:20], key[:20].upper(), code["qr_code_id"].lower()):
        assert search(admin_client, query).headers["Location"] == payment_page(code), query
    for query in (f"{key}x", key[:20] + "0" * 10, "pay_", "zzz_" + key[4:]):
        page = admin_client.get("/admin/payments/payment/", {"q": query})
        assert list(page.context["cl"].result_list) == [], query


def test_list_of_refunds_finds_those_of_a_payment_in_any_case(
    shop: Shop, bank: SandboxBankClient, admin_client: Client
) -> None:
    refunds = RefundShop(shop, bank)
    refund_id = refunds.refund(key := refunds.paid(), amount=100)["refund_id"]
    for query in (key.lower(), key[:20], "1.00", refund_id.upper()):
        page = admin_client.get("/admin/refunds/refund/", {"q": query})
        assert [row.pk for row in page.context["cl"].result_list] == [refund_id], query


def test_ids_of_one_beginning_are_listed_the_newest_first(
    shop: Shop, admin_client: Client, noon: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admin_search, "MAX_IDS", 2)
    with time_machine.travel(noon, tick=False) as moved:
        codes = []
        for _ in range(3):
            codes.append(shop.qr_code())
            moved.shift(timedelta(seconds=1))
        page = text_of(search(admin_client, codes[0]["payment_id"][:7]))
    assert [payment_page(code) in page for code in codes] == [False, True, True]


@pytest.mark.parametrize("query", ["inv-2026-0042", "INV-2026", "Inv", "inv\u20112026\u2011๐๐๔๒"])
def test_reference_is_found_in_any_case_and_by_its_beginning(
    shop: Shop, admin_client: Client, query: str
) -> None:
    code = shop.qr_code(reference="INV-2026-0042")
    shop.qr_code(reference="2026-0042")
    assert search(admin_client, query).headers["Location"] == payment_page(code)


@pytest.mark.parametrize(
    "address",
    ["https://pay.example/pay/{}", "pay.example/pay/{}/state?lang=th", "see https://x/pay/{}, ok?"],
)
def test_address_of_a_payment_page_leads_to_its_payment(
    shop: Shop, admin_client: Client, address: str
) -> None:
    code = shop.qr_code()
    address = address.format(code["qr_code_id"])
    assert search(admin_client, address).headers["Location"] == payment_page(code)
    assert code["payment_id"] in text_of(admin_client.get("/admin/payments/payment/", {"q": address}))
    assert search(admin_client, payment_page(code)).headers["Location"] == payment_page(code)


def test_addresses_of_link_and_claim_pages_lead_to_the_link_and_the_refund(
    shop: Shop, bank: SandboxBankClient, admin_client: Client
) -> None:
    link = shop.post("/v1/payment-links", {"amount": 100}).json()
    page = f"/admin/links/paymentlink/{quote(link['payment_link_id'])}/change/"
    assert search(admin_client, link["url"]).headers["Location"] == page
    refund = RefundShop(shop, bank)
    refund_id = refund.refund(refund.paid(payer=NOBODY))["refund_id"]
    shop.post(f"/v1/refunds/{refund_id}/claim-link", {})
    url = f"https://pay.example/claim/{ClaimLink.objects.get().token}"
    page = f"/admin/refunds/refund/{quote(refund_id)}/change/"
    assert search(admin_client, url).headers["Location"] == page
    assert "Nothing was found." in text_of(search(admin_client, url[:-1]))


def test_staff_are_found_by_those_who_may_see_people(admin_client: Client, shop: Shop) -> None:
    person = User.objects.create_user("somying", first_name="Somying", last_name="Rakdee", is_staff=True)
    for query in ("somying", "rakdee"):
        assert search(admin_client, query).headers["Location"] == f"/admin/auth/user/{person.pk}/change/"
    other = staff_client("malee", "view_payment")
    assert "somying" not in text_of(search(other, "rakdee"))


def typed(client: Client, query: str) -> str:
    return text_of(client.get("/admin/search/typed/", {"q": query}))


def test_typed_search_shows_merchant_masked_payer_and_state(
    shop: Shop, bank: SandboxBankClient, admin_client: Client
) -> None:
    code = shop.qr_code(reference="order 17")
    bank.notify(code, payer_name="Somchai Jaidee")
    options = typed(admin_client, "order 1")
    assert f'role="option" aria-selected="false" id="found-1-1" data-url="{payment_page(code)}"' in options
    for text in (shop.merchant.name, "S*** J***", "Succeeded", "order 17", 'data-count="1 found"'):
        assert text in options, text
    assert "<a " not in options
    assert "Somchai" not in options


def test_typed_search_finds_nobody_by_name_or_account_and_is_not_recorded(
    shop: Shop, bank: SandboxBankClient, admin_client: Client
) -> None:
    bank.notify(shop.qr_code(), payer_name="Somchai Jaidee", payer_account="4051239876")
    for query in ("somchai", "jaidee", "9876", "", "\0", "%"):
        assert 'id="found-1' not in typed(admin_client, query), query
    assert not AuditRecord.objects.filter(act=Act.SEARCHED).exists()


def test_person_who_searches_without_a_pause_is_refused_and_others_are_not(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search_page, "RATE", RateLimit(per_second=0.01, burst=3))
    eager, other = staff_client("eager", "view_payment"), staff_client("other", "view_payment")
    for path in ("/admin/search/", "/admin/search/typed/", "/admin/search/"):
        assert eager.get(path, {"q": "order"}).status_code == 200
    for path in ("/admin/search/", "/admin/search/typed/"):
        refused = eager.get(path, {"q": "order"})
        assert (refused.status_code, int(refused.headers["Retry-After"]) > 0) == (429, True)
        assert "Too many searches" in refused.content.decode()
    assert other.get("/admin/search/", {"q": "order"}).status_code == 200
    assert eager.get("/admin/payments/payment/").status_code == 200


def test_search_reads_a_bounded_number_of_rows(admin_client: Client) -> None:
    for query in ("pay_0oK6g2e1hUFoYaGSFYfTawPygcv", "order 17", "1998.00", "9876", "Somchai Jaidee"):
        with CaptureQueriesContext(connection) as captured:
            search(admin_client, query)
        read = [each["sql"] for each in captured if each["sql"].startswith("SELECT")]
        assert len(read) < 80
        # `test_amount_looks_at_the_newest_rows_and_says_so` checks the limit of what has no index.
        scanned = ('"amount" = ', 'last4" = ', 'payer_account_sealed" = ', '"payer_name"::text)')
        for sql in (each for each in read if not any(part in each for part in scanned)):
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
