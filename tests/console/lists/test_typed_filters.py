"""Filters of lists by merchant, test or live, and amount range; they read a bounded number of rows."""

from datetime import datetime, timedelta
from html import unescape
from typing import Any

import pytest
import time_machine
from django.test import Client

from core import clock
from core.console import admin_lists
from merchants.models import Merchant
from tests.conftest import SandboxBankClient, Shop, open_shop
from tests.reconciliation.builders import Seller, staff_client
from tests.webhooks.builders import make_endpoint
from tests.withdrawals.builders import withdrawn

PAYMENTS = "/admin/payments/payment/"


@pytest.fixture
def rival(db: None) -> Shop:
    return open_shop("Malee Flowers")


def page(client: Client, path: str = PAYMENTS, **query: Any) -> str:
    answer = client.get(path, query)
    assert answer.status_code == 200, answer.headers
    return unescape(answer.content.decode())


def listed(client: Client, codes: dict[str, str], **query: Any) -> list[str]:
    """The names of the payments that the list shows."""
    text = page(client, **query)
    return [name for name, payment_id in codes.items() if payment_id in text]


@pytest.mark.slow
def test_merchant_filter_takes_a_name_a_part_of_it_or_an_id(
    admin_client: Client, shop: Shop, rival: Shop
) -> None:
    codes = {"ours": shop.qr_code()["payment_id"], "theirs": rival.qr_code()["payment_id"]}
    for text in ("Malee Flowers", "malee", " MALEE flowers ", rival.merchant.id, f"x {rival.merchant.id}"):
        assert listed(admin_client, codes, merchant=text) == ["theirs"], text
    assert listed(admin_client, codes, merchant="") == ["ours", "theirs"]
    assert listed(admin_client, codes, merchant="o") == ["ours", "theirs"]  # both names have this letter


@pytest.mark.parametrize("text", ["Nobody", "mch_0", "%", "x" * 300])
def test_unknown_merchant_is_named_in_the_error(admin_client: Client, shop: Shop, text: str) -> None:
    code = shop.qr_code()["payment_id"]
    found = page(admin_client, merchant=text)
    assert f"No merchant has “{text[:100]}” in its name." in found
    assert code not in found


@pytest.mark.slow
def test_days_from_and_to_belong_to_the_range(admin_client: Client, shop: Shop, noon: datetime) -> None:
    codes: dict[str, str] = {}
    for days in range(4):
        with time_machine.travel(noon + timedelta(days=days), tick=False):
            codes[f"{noon + timedelta(days=days):%Y-%m-%d}"] = shop.qr_code()["payment_id"]
    first, second, third, last = codes
    with time_machine.travel(noon + timedelta(days=3), tick=False):
        assert listed(admin_client, codes, date_from=second, date_to=third) == [second, third]
        assert listed(admin_client, codes, date_from=third, date_to="") == [third, last]
        assert listed(admin_client, codes, date_to=first, merchant=shop.merchant.id) == [first]
        assert listed(admin_client, codes, date_from="", date_to="") == list(codes)
        found = page(admin_client, date_from=third, date_to=second)
    assert "Choose days that exist. The first is not after the last." in found
    assert codes[second] not in found


@pytest.mark.slow
def test_amount_range_includes_both_ends(admin_client: Client, shop: Shop) -> None:
    codes = {baht: shop.qr_code(amount=int(baht) * 100)["payment_id"] for baht in ("100", "200", "1500")}
    assert listed(admin_client, codes, amount_from="200", amount_to="1,500.00") == ["200", "1500"]
    assert listed(admin_client, codes, amount_from="200.01") == ["1500"]
    assert listed(admin_client, codes, amount_to="฿199.99") == ["100"]
    assert listed(admin_client, codes, amount_from="", amount_to="") == ["100", "200", "1500"]


@pytest.mark.parametrize(
    ("query", "error"),
    [
        ({"amount_from": "many"}, "“many” is no amount in baht"),
        ({"amount_to": "-5"}, "“-5” is no amount in baht"),
        ({"amount_to": "9" * 40}, "is no amount in baht"),
        ({"amount_from": "2", "amount_to": "1"}, "“From” is more than “to”."),
    ],
)
def test_wrong_amount_is_named_in_the_error(
    admin_client: Client, shop: Shop, query: dict[str, str], error: str
) -> None:
    code = shop.qr_code()["payment_id"]
    found = page(admin_client, **query)
    assert error in found
    assert code not in found


@pytest.mark.slow
def test_test_and_live_rows_are_apart(admin_client: Client, shop: Shop) -> None:
    code = shop.qr_code()["payment_id"]
    assert code in page(admin_client, mode="test")
    assert code not in page(admin_client, mode="live")
    assert code not in page(admin_client)  # the session keeps it
    assert code not in page(admin_client, mode="x")  # an unknown value chooses nothing
    assert code in page(admin_client, mode="test")
    assert code in page(admin_client)


@pytest.mark.slow
def test_every_list_of_money_has_the_filters(
    admin_client: Client, shop: Shop, rival: Shop, bank: SandboxBankClient
) -> None:
    make_endpoint(shop)
    seller = Seller(shop, bank)
    bank_transaction = seller.mismatch(149_900)
    refund = seller.refund(seller.paid())
    seller.paid()
    withdrawal = withdrawn(shop, amount=10_000)
    rows = {
        "refunds/refund": refund["refund_id"],
        "withdrawals/withdrawal": withdrawal["withdrawal_id"],
        "reconciliation/banktransaction": bank_transaction.id,
        "reconciliation/reconciliationexception": bank_transaction.id,
    }
    for path, key in rows.items():
        url = f"/admin/{path}/"
        assert key in page(admin_client, url, merchant=shop.merchant.name), path
        assert key not in page(admin_client, url, merchant=rival.merchant.name), path
        assert key in page(admin_client, url, amount_from="1"), path
        assert key not in page(admin_client, url, amount_to="1"), path
    for path in ("refunds/refund", "withdrawals/withdrawal", "reconciliation/banktransaction"):
        assert rows[path] in page(admin_client, f"/admin/{path}/", mode="test"), path
        assert rows[path] not in page(admin_client, f"/admin/{path}/", mode="live"), path
    deliveries = "/admin/webhooks/delivery/"
    assert "dlv_" in page(admin_client, deliveries, merchant=shop.merchant.id, mode="test")
    assert "dlv_" not in page(admin_client, deliveries, merchant=rival.merchant.id)
    assert "dlv_" not in page(admin_client, deliveries, mode="live")


@pytest.mark.slow
def test_merchant_filter_finds_old_rows_that_other_filters_do_not_read(
    admin_client: Client, shop: Shop, rival: Shop, monkeypatch: pytest.MonkeyPatch, noon: datetime
) -> None:
    monkeypatch.setattr(admin_lists, "FILTERED_ROWS", 2)
    codes: dict[str, str] = {}
    with time_machine.travel(noon, tick=False) as traveller:
        for name in ("old", "middle", "new"):
            codes[name] = rival.qr_code()["payment_id"]
            traveller.shift(timedelta(days=1))
        for _ in range(5):
            shop.qr_code()
        assert listed(admin_client, codes, merchant="Malee") == ["old", "middle", "new"]
        assert listed(admin_client, codes, merchant="Malee", amount_from="1") == ["middle", "new"]
        assert "newest 2 rows" in page(admin_client, merchant="Malee", amount_from="1")
        day = f"{noon:%Y-%m-%d}"
        assert listed(admin_client, codes, merchant="Malee", amount_from="1", date=day) == ["old"]
        assert listed(admin_client, codes, amount_from="1") == []


@pytest.mark.slow
def test_newest_payments_of_a_merchant_come_first(admin_client: Client, rival: Shop, noon: datetime) -> None:
    with time_machine.travel(noon, tick=False) as traveller:
        older = rival.qr_code()["payment_id"]
        traveller.shift(timedelta(seconds=1))
        newer = rival.qr_code()["payment_id"]
        text = page(admin_client, merchant="Malee")
    assert text.index(newer) < text.index(older)


def test_form_of_a_filter_keeps_the_others(admin_client: Client, shop: Shop) -> None:
    text = page(admin_client, status="pending", amount_from="5", q="x", p="0")
    assert text.count('<input type="hidden" name="status" value="pending">') >= 2
    assert '<input type="hidden" name="p"' not in text


@pytest.mark.slow
def test_suggestions_name_one_merchant_each(admin_client: Client, shop: Shop, rival: Shop) -> None:
    Merchant.objects.filter(pk=shop.merchant.id).update(name="Malee Flowers 2")
    answer = admin_client.get("/admin/merchants/merchant/suggest/", {"q": "lee fl"})
    found = answer.json()["suggestions"]
    assert found == [f"Malee Flowers {rival.merchant.id}", f"Malee Flowers 2 {shop.merchant.id}"]
    ours = shop.qr_code()["payment_id"]
    assert ours in page(admin_client, merchant=found[1])
    assert ours not in page(admin_client, merchant=found[0])
    for query in ("", "  ", "\0"):
        assert admin_client.get("/admin/merchants/merchant/suggest/", {"q": query}).json() == {
            "suggestions": []
        }


def test_suggestions_need_the_permission_to_see_merchants(db: None) -> None:
    client = staff_client("onlooker", "view_payment")
    assert client.get("/admin/merchants/merchant/suggest/", {"q": "a"}).status_code == 403


@pytest.mark.slow
def test_list_of_payments_has_no_link_for_each_merchant(admin_client: Client, db: None) -> None:
    numbers = range(300)
    Merchant.objects.bulk_create(
        Merchant(
            id=f"mch_{each:027d}", name=f"Stall {each}", mode="test", bank="sandbox", created_at=clock.now()
        )
        for each in numbers
    )
    assert "Stall 1" not in page(admin_client)
    found = admin_client.get("/admin/merchants/merchant/suggest/", {"q": "stall"}).json()["suggestions"]
    assert len(found) == 20
