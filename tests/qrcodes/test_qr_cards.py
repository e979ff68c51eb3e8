"""The card of a code over HTTP: formats, sizes, languages, who gets one, caching, limits."""

import io
import re
from datetime import datetime
from typing import Any

import pypdfium2
import pytest
import time_machine
import zxingcpp
from django.test import Client
from PIL import Image
from pypdf import PdfReader

from core.http.rate_limits import RateLimit
from core.work import redis
from qrcodes import payment_page, qr_cards
from tests.conftest import SandboxBankClient, Shop, open_shop
from tests.qrcodes.test_image_view import texts_in

PUBLIC_ADDRESS = "203.0.113.7"


def path_of(code: dict[str, Any], query: str = "") -> str:
    return f"/Thai/v1/qr-codes/{code['qr_code_id']}/card" + (f"?{query}" if query else "")


def public_path(code: dict[str, Any], query: str = "") -> str:
    return f"/pay/{code['qr_code_id']}/card.png" + (f"?{query}" if query else "")


@pytest.mark.parametrize("size", [200, 300, 512, pytest.param(2000, marks=pytest.mark.slow)])
def test_png_card_of_each_size_is_decoded(shop: Shop, size: int) -> None:
    code = shop.qr_code(reference="INV-2026-0042")
    answer = shop.get(path_of(code, f"size={size}"))
    assert (answer.status_code, answer.headers["Content-Type"]) == (200, "image/png")
    assert Image.open(io.BytesIO(answer.content)).size == (size, round(size * 1.414))
    assert texts_in(answer.content) == [code["qr_data"]]
    assert len(answer.content) < 150_000


@pytest.mark.parametrize("amount", [100, 200_000_000])
@pytest.mark.slow
def test_default_card_is_a_png_of_a_thousand_pixels(shop: Shop, amount: int) -> None:
    code = shop.qr_code(amount=amount)
    answer = shop.get(path_of(code))
    assert Image.open(io.BytesIO(answer.content)).width == 1000
    assert texts_in(answer.content) == [code["qr_data"]]


@pytest.mark.parametrize("size", [200, 1240])
@pytest.mark.slow
def test_pdf_card_is_one_page_with_a_bleed_and_is_decoded(shop: Shop, size: int) -> None:
    code = shop.qr_code()
    answer = shop.get(path_of(code, f"format=pdf&size={size}"))
    assert answer.headers["Content-Type"] == "application/pdf"
    [page] = PdfReader(io.BytesIO(answer.content), strict=True).pages
    width = size / 300 * 72
    assert float(page.trimbox.width) == pytest.approx(width, abs=0.02)
    assert float(page.mediabox.width) == pytest.approx(width + 2 * 3 / 25.4 * 72, abs=0.02)
    [shown] = pypdfium2.PdfDocument(answer.content)
    image = shown.render(scale=4).to_pil().convert("L")
    only = zxingcpp.BarcodeFormats([zxingcpp.BarcodeFormat.QRCode])
    assert [found.text for found in zxingcpp.read_barcodes(image, formats=only)] == [code["qr_data"]]


@pytest.mark.slow
def test_pdf_needs_no_font(shop: Shop) -> None:
    pdf = shop.get(path_of(shop.qr_code(reference="บิล ๔๒"), "format=pdf")).content
    assert b"/Font" not in pdf
    properties = PdfReader(io.BytesIO(pdf)).metadata
    assert properties is not None
    assert properties.title == "Somtam House · ฿1,500.00"


@pytest.mark.parametrize(
    ("query", "param"),
    [
        ("size=199", "size"),
        ("size=2001", "size"),
        ("size=0", "size"),
        ("size=1e3", "size"),
        ("size=300&size=400", "size"),
        ("format=gif", "format"),
        ("lang=de", "lang"),
    ],
)
def test_parameter_out_of_range_is_named(shop: Shop, query: str, param: str) -> None:
    answer = shop.get(path_of(shop.qr_code(), query))
    error = answer.json()["error"]
    assert (answer.status_code, error["code"], error["param"]) == (400, "invalid_parameters", param)


def test_size_out_of_range_says_the_range(shop: Shop) -> None:
    error = shop.get(path_of(shop.qr_code(), "size=4000")).json()["error"]
    assert error["message"] == 'size must be an integer from 200 to 2,000. Received: "4000".'


def test_language_and_test_mark_change_the_card(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    code = shop.qr_code()
    thai, english = (shop.get(path_of(code, f"size=200&lang={each}")).content for each in ("th", "en"))
    assert thai != english
    assert shop.get(path_of(code, "size=200")).content == thai


def test_card_says_shop_amount_reference_expiry_and_test(shop: Shop, noon: datetime) -> None:
    with time_machine.travel(noon, tick=False):
        code = shop.qr_code(reference="INV-7", expiry_minutes=90)
        payment = payment_of(code)
    english, thai = (texts_of(payment, language) for language in ("en", "th"))
    assert english == [
        "Somtam House",
        "฿1,500.00",
        "Reference INV-7",
        "Pay before 21 Nov 2026 13:30 (Bangkok time)",
        "Test mode: no real money",
    ]
    assert thai[2:] == [
        "เลขอ้างอิง INV-7",
        "จ่ายก่อน 21 พ.ย. 2569 13:30 น. (เวลาประเทศไทย)",
        "โหมดทดสอบ: ไม่ใช่เงินจริง",
    ]


def test_card_of_a_live_merchant_has_no_test_mark(shop: Shop) -> None:
    payment = payment_of(shop.qr_code())
    payment.merchant.mode = "live"
    assert texts_of(payment, "en")[-1] == ""


def payment_of(code: dict[str, Any]) -> Any:
    from qrcodes.models import QrCode

    return QrCode.objects.get(pk=code["payment_id"]).payment


def texts_of(payment: Any, language: str) -> list[str]:
    from django.utils import translation

    with translation.override(language):
        return [*qr_cards.texts_of(payment)[:5]]


@pytest.mark.slow
def test_paid_or_ended_code_has_no_card(shop: Shop, bank: SandboxBankClient) -> None:
    paid, ended = shop.qr_code(), shop.qr_code()
    etag = shop.get(path_of(paid, "size=200")).headers["ETag"]
    bank.notify(paid)
    shop.post(f"/v1/qr-codes/{ended['qr_code_id']}/expire")
    for code, status in ((paid, "succeeded"), (ended, "expired")):
        answer = shop.get(path_of(code, "size=200"), **{"If-None-Match": etag})
        assert (answer.status_code, answer.json()["error"]["code"]) == (410, "qr_code_gone")
        assert status in answer.json()["error"]["message"]
        public = Client().get(public_path(code))
        assert (public.status_code, public.headers["Content-Type"]) == (410, "image/png")
        assert texts_in(public.content) == []


def test_code_with_money_that_does_not_match_has_no_card(shop: Shop, bank: SandboxBankClient) -> None:
    code = shop.qr_code()
    bank.notify(code, satang=100_000)
    error = shop.get(path_of(code)).json()["error"]
    assert error["message"] == "Do not pay this QR code: money arrived for it that does not match."
    assert Client().get(public_path(code)).status_code == 410


def test_card_needs_the_key_of_its_merchant(shop: Shop, other_shop: Shop) -> None:
    code = shop.qr_code()
    assert Client().get(path_of(code)).status_code == 401
    answer = other_shop.get(path_of(code))
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "qr_code_not_found")


@pytest.mark.slow
def test_payment_page_saves_the_card_without_a_key(shop: Shop) -> None:
    code = shop.qr_code()
    page = Client().get(f"/pay/{code['qr_code_id']}?lang=en").content.decode()
    found = re.search(r'href="(/pay/\S+/card.png\?lang=en)" download="(\S+)"', page)
    assert found is not None
    answer = Client().get(found[1])
    assert (answer.status_code, answer.headers["Content-Type"]) == (200, "image/png")
    assert texts_in(answer.content) == [code["qr_data"]]
    assert answer.content == shop.get(path_of(code, "lang=en")).content
    assert found[2] in answer.headers["Content-Disposition"]


@pytest.mark.parametrize("qr_code_id", ["qr_000000000000000000000000000", "x", "%00"])
def test_unknown_code_has_no_card(shop: Shop, qr_code_id: str) -> None:
    for answer in (
        shop.get(f"/v1/qr-codes/{qr_code_id}/card"),
        Client().get(f"/pay/{qr_code_id}/card.png"),
    ):
        assert (answer.status_code, answer.json()["error"]["code"]) == (404, "qr_code_not_found")


@pytest.mark.slow
def test_card_with_matching_etag_is_304_and_other_cards_are_not(shop: Shop) -> None:
    code = shop.qr_code()
    etag = shop.get(path_of(code, "size=200")).headers["ETag"]
    again = shop.get(path_of(code, "size=200"), **{"If-None-Match": etag})
    assert (again.status_code, again.content) == (304, b"")
    for query in ("size=201", "size=200&lang=en", "size=200&format=pdf"):
        assert shop.get(path_of(code, query), **{"If-None-Match": etag}).status_code == 200


@pytest.mark.slow
def test_merchant_and_visitor_that_ask_too_often_wait(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    few = RateLimit(per_second=0.1, burst=2)
    monkeypatch.setattr(qr_cards, "MERCHANT_RATE", few)
    code = shop.qr_code()
    asked = [shop.get(path_of(code, "size=200")) for _ in range(3)]
    assert [answer.status_code for answer in asked] == [200, 200, 429]
    assert "cards of this merchant" in asked[2].json()["error"]["message"]
    assert int(asked[2].headers["Retry-After"]) >= 1
    monkeypatch.setattr(payment_page, "CARD_RATE", few)
    redis.try_call(lambda client: client.delete(f"rate:payment-card:{PUBLIC_ADDRESS}"))
    other = open_shop("Larb Palace").qr_code()
    visitor = Client(REMOTE_ADDR=PUBLIC_ADDRESS)
    assert [visitor.get(public_path(other)).status_code for _ in range(3)] == [200, 200, 429]
    assert visitor.get(f"/pay/{other['qr_code_id']}").status_code == 200


def test_cards_that_are_drawn_at_once_are_limited(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(qr_cards, "WAIT_SECONDS", 0.0)
    code = shop.qr_code()
    with qr_cards._slots.hold(shop.merchant.id, total=2, share=1):
        answer = shop.get(path_of(code, "size=200"))
        assert (answer.status_code, answer.headers["Retry-After"]) == (429, "1")
        assert open_shop("Larb Palace").qr_code()
    assert shop.get(path_of(code, "size=200")).status_code == 200
