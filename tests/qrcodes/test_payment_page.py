"""The payment page over HTTP: what a customer reads in each state, languages, polling, limits."""

import io
import re
from datetime import datetime, timedelta
from typing import Any

import pytest
import time_machine
from django.test import Client
from django.utils import translation
from PIL import Image

from core import ids
from core.http.rate_limits import RateLimit
from core.work import redis
from payments.models import Payment
from qrcodes import payment_page, qr_cards
from tests.conftest import SandboxBankClient, Shop
from tests.factories import PaymentFactory
from tests.reconciliation.builders import Seller


def path_of(code: dict[str, Any]) -> str:
    return f"/pay/{code['qr_code_id']}"


def read(code: dict[str, Any], language: str = "en") -> str:
    answer = Client().get(f"{path_of(code)}?lang={language}")
    assert answer.status_code == 200
    return answer.content.decode()


def heading(code: dict[str, Any], language: str = "en") -> str:
    found = re.search("<h1>(.+?)</h1>", read(code, language))
    assert found is not None
    return found[1]


def state_of(code: dict[str, Any], etag: str = "") -> Any:
    return Client().get(f"{path_of(code)}/state", headers={"If-None-Match": etag} if etag else {})


def test_code_has_the_address_of_its_payment_page(shop: Shop, settings: Any) -> None:
    code = shop.qr_code()
    assert code["payment_page_url"] == settings.BASE_URL + path_of(code)
    assert (
        shop.get(f"/v1/qr-codes/{code['qr_code_id']}").json()["payment_page_url"] == code["payment_page_url"]
    )


def test_open_code_shows_shop_amount_reference_and_picture(shop: Shop) -> None:
    code = shop.qr_code(reference="INV-2026-0042", client_name="Somchai Jaidee", description="Two lamps")
    page = read(code)
    for shown in ("Somtam House", "฿1,500.00", "INV-2026-0042", f"{code['qr_code_id']}/image?format=svg"):
        assert shown in page
    for hidden in ("Somchai", code["payment_id"], shop.merchant.id):
        assert hidden not in page


@pytest.mark.parametrize(
    ("accepted", "chosen", "language"),
    [
        ("", "", "th"),
        ("en-GB,en;q=0.9", "", "en"),
        ("de,en;q=0.5,th;q=0.4", "", "en"),
        ("de", "", "th"),
        ("en", "th", "th"),
        ("th", "en", "en"),
        ("th", "xx", "th"),
        ("\x00;;q=,,", "", "th"),
    ],
)
def test_page_has_the_language_of_the_customer(shop: Shop, accepted: str, chosen: str, language: str) -> None:
    path = path_of(shop.qr_code()) + (f"?lang={chosen}" if chosen else "")
    answer = Client().get(path, headers={"Accept-Language": accepted})
    assert answer.headers["Content-Language"] == language
    assert ("Scan to pay" in answer.content.decode()) is (language == "en")


def test_names_of_a_shop_cannot_add_markup(shop: Shop) -> None:
    shop.merchant.name = "<script>alert(1)</script>"
    shop.merchant.save()
    page = read(shop.qr_code(reference="<b>7</b>"))
    assert "<script>alert" not in page
    assert "<b>7" not in page


def test_page_loads_nothing_from_others_and_cannot_be_framed(shop: Shop) -> None:
    code = shop.qr_code()
    answer = Client().get(path_of(code))
    policy = answer.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert answer.headers["Cache-Control"] == "no-store"
    assert re.findall(r'(?:src|href)="(?!/|\?|data:,)', read(code)) == []
    assert " style=" not in read(code)


@pytest.mark.slow
def test_paid_failed_and_expired_codes_say_so(shop: Shop, bank: SandboxBankClient) -> None:
    paid, failed, expired = shop.qr_code(), shop.qr_code(), shop.qr_code()
    bank.notify(paid)
    bank.notify(failed, type="decline")
    shop.post(f"/v1/qr-codes/{expired['qr_code_id']}/expire")
    assert [heading(each) for each in (paid, failed, expired)] == [
        "Paid", "The payment failed", "This code has expired",
    ]  # fmt: skip
    assert [state_of(each).json()["state"] for each in (paid, failed, expired)] == [
        "paid",
        "failed",
        "expired",
    ]
    assert "/image" not in read(paid)


def test_page_counts_down_and_expires_by_the_clock(shop: Shop, noon: datetime) -> None:
    with time_machine.travel(noon, tick=False) as clock:
        code = shop.qr_code(expiry_minutes=15)
        clock.move_to(noon + timedelta(minutes=14))
        assert 'data-seconds-left="60"' in read(code)
        assert "Pay before 21 Nov 2026 12:15" in read(code)
        assert "จ่ายก่อน 21 พ.ย. 2569 12:15 น." in read(code, "th")
        assert "Pay before 22 Nov 2026 11:59" in read(shop.qr_code(expiry_minutes=1425))
        clock.move_to(noon + timedelta(minutes=15))
        assert heading(code) == "This code has expired"
        assert "qrcodes/pay.js" in read(code)  # the bank may still report the money
        clock.move_to(noon + timedelta(minutes=76))
        assert "qrcodes/pay.js" not in read(code)


def test_money_that_does_not_match_is_never_shown_as_unpaid(shop: Shop, bank: SandboxBankClient) -> None:
    code = shop.qr_code()
    bank.notify(code, satang=100_000)
    assert heading(code) == "The shop checks your payment"
    assert "฿1,000.00 arrived" in read(code)
    shop.post(f"/v1/qr-codes/{code['qr_code_id']}/expire")
    assert heading(code) == "The shop checks your payment"


def test_second_payment_of_a_code_is_shown(shop: Shop, bank: SandboxBankClient) -> None:
    code = shop.qr_code()
    bank.notify(code)
    bank.notify(code)
    assert heading(code) == "Paid, and more money arrived"
    assert "฿1,500.00 arrived beside the amount" in read(code)


@pytest.mark.slow
def test_paid_page_has_time_reference_and_receipt(
    shop: Shop, bank: SandboxBankClient, noon: datetime
) -> None:
    with time_machine.travel(noon, tick=False):
        code = shop.qr_code(reference="INV-7")
        receipt = f"{path_of(code)}/receipt.png"
        assert Client().get(receipt).headers["Location"] == path_of(code)  # not paid yet
        bank.notify(code)
        payment = shop.payment(code["payment_id"])
        page = read(code)
        for shown in ("21 Nov 2026 12:00", payment["bank_reference"], f"{receipt}?lang=en"):
            assert shown in page
        assert "21 พ.ย. 2569 12:00 น." in read(code, "th")
        answer = Client().get(f"{receipt}?lang=en")
    assert (answer.status_code, answer.headers["Content-Type"]) == (200, "image/png")
    assert Image.open(io.BytesIO(answer.content)).width == 1000
    with translation.override("en"):
        texts = qr_cards.receipt_texts_of(Payment.objects.get())
    assert texts == (
        "Somtam House",
        "฿1,500.00",
        "Reference INV-7",
        "This is not a tax invoice.",
        "Test mode: no real money",
        "PROOF OF PAYMENT",
        ("Paid on 21 Nov 2026 12:00 (Bangkok time)", f"Bank reference {payment['bank_reference']}"),
    )


@pytest.mark.slow
def test_refunded_payment_says_so(shop: Shop, bank: SandboxBankClient) -> None:
    seller = Seller(shop, bank)
    credit = seller.sale()
    seller.reverse(credit)
    assert credit.payment_id is not None
    assert heading(shop.payment(credit.payment_id)) == "Refunded"


def test_state_is_304_until_it_changes(shop: Shop, bank: SandboxBankClient) -> None:
    code = shop.qr_code()
    found = re.search('data-etag="(.+?)"', read(code))
    assert found is not None
    etag = found[1].replace("&quot;", '"')
    unchanged = state_of(code, etag)
    assert 890 < int(unchanged.headers["Seconds-Left"]) <= 900
    assert (unchanged.status_code, unchanged.content) == (304, b"")
    bank.notify(code)
    changed = state_of(code, etag)
    assert (changed.status_code, changed.json()) == (200, {"state": "paid"})
    assert state_of(code, changed.headers["ETag"]).status_code == 304


@pytest.mark.parametrize("qr_code_id", ["qr_000000000000000000000000000", "x", "%00"])
def test_unknown_code_is_404_as_a_page_and_as_json(db: None, qr_code_id: str) -> None:
    page = Client().get(f"/pay/{qr_code_id}", headers={"Accept-Language": "en"})
    assert (page.status_code, "There is no such code" in page.content.decode()) == (404, True)
    assert Client().get(f"/pay/{qr_code_id}/state").json()["error"]["code"] == "qr_code_not_found"


def test_code_of_a_card_payment_has_no_page(shop: Shop) -> None:
    card_payment = PaymentFactory(merchant=shop.merchant, qr_code_id=None)
    for qr_code_id in (card_payment.id, ids.of_code(card_payment.id)):
        assert Client().get(f"/pay/{qr_code_id}").status_code == 404


def test_only_get_and_head_are_allowed(shop: Shop) -> None:
    code = shop.qr_code()
    assert Client().head(path_of(code)).status_code == 200
    assert Client().post(path_of(code)).status_code == 405


def test_network_that_asks_too_often_waits_and_others_do_not(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(payment_page, "RATE", RateLimit(per_second=0.1, burst=2))
    code = shop.qr_code()
    redis.try_call(lambda client: client.delete("rate:payment-page:203.0.113.7"))
    asked = [Client(REMOTE_ADDR="203.0.113.7").get(f"{path_of(code)}/state") for _ in range(3)]
    assert [answer.status_code for answer in asked] == [200, 200, 429]
    assert int(asked[2].headers["Retry-After"]) >= 1
    page = Client(REMOTE_ADDR="203.0.113.7").get(path_of(code), headers={"Accept-Language": "en"})
    assert (page.status_code, "Too many requests" in page.content.decode()) == (429, True)
    assert Client(REMOTE_ADDR="203.0.113.8").get(path_of(code)).status_code == 200
    assert shop.get("/v1/payments").status_code == 200
