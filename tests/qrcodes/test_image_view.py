"""The picture of a QR code over HTTP: formats, caching, and 410 once it can no longer be paid."""

import io
from datetime import datetime, timedelta
from typing import Any

import pytest
import time_machine
import zxingcpp
from django.test import Client
from PIL import Image

from tests.conftest import SandboxBankClient, Shop

QR_ONLY = zxingcpp.BarcodeFormats([zxingcpp.BarcodeFormat.QRCode])


def path_of(code: dict[str, Any]) -> str:
    return f"/Thai/qr-codes/{code['qr_code_id']}/image"


def texts_in(png: bytes) -> list[str]:
    picture = Image.open(io.BytesIO(png)).convert("L")
    return [found.text for found in zxingcpp.read_barcodes(picture, formats=QR_ONLY)]


def test_qr_image_contains_the_payload_and_needs_no_api_key(shop: Shop) -> None:
    code = shop.qr_code()
    answer = Client().get(path_of(code))
    assert (answer.status_code, answer.headers["Content-Type"]) == (200, "image/png")
    assert texts_in(answer.content) == [code["qr_data"]]
    assert Image.open(io.BytesIO(answer.content)).width >= 512
    assert answer.headers["Cache-Control"] == "no-cache"
    assert answer.headers["Access-Control-Allow-Origin"] == "*"


@pytest.mark.parametrize("prefix", ["/Thai/v1", "/v1", "/Thai"])
def test_qr_image_is_served_under_every_path_form(shop: Shop, prefix: str) -> None:
    code = shop.qr_code()
    assert Client().get(f"{prefix}/qr-codes/{code['qr_code_id']}/image").status_code == 200


def test_svg_image_is_chosen_by_parameter_or_accept_header(shop: Shop) -> None:
    path = path_of(shop.qr_code())
    by_parameter = Client().get(f"{path}?format=svg")
    by_header = Client().get(path, headers={"Accept": "image/svg+xml"})
    assert by_parameter.headers["Content-Type"] == by_header.headers["Content-Type"] == "image/svg+xml"
    assert by_parameter.content == by_header.content
    assert by_parameter.content.startswith(b"<svg")


def test_qr_image_with_matching_etag_is_304(shop: Shop) -> None:
    path = path_of(shop.qr_code())
    etag = Client().get(path).headers["ETag"]
    again = Client().get(path, headers={"If-None-Match": etag})
    assert (again.status_code, again.content, again.headers["ETag"]) == (304, b"", etag)


def test_image_of_a_paid_qr_code_is_410_without_symbol(shop: Shop, bank: SandboxBankClient) -> None:
    code = shop.qr_code()
    etag = Client().get(path_of(code)).headers["ETag"]
    bank.notify(code)
    answer = Client().get(path_of(code), headers={"If-None-Match": etag})
    assert (answer.status_code, answer.headers["Content-Type"]) == (410, "image/png")
    assert texts_in(answer.content) == []
    svg = Client().get(f"{path_of(code)}?format=svg")
    assert (svg.status_code, svg.headers["Content-Type"]) == (410, "image/svg+xml")
    assert b"PAID" in svg.content


@pytest.mark.slow
def test_image_of_an_expired_qr_code_is_410(shop: Shop, noon: datetime) -> None:
    with time_machine.travel(noon, tick=False) as clock:
        code = shop.qr_code()
        clock.move_to(noon + timedelta(minutes=15))
        assert Client().get(path_of(code)).status_code == 410
        as_json = Client().get(path_of(code), headers={"Accept": "application/json"})
    assert (as_json.status_code, as_json.json()["error"]["code"]) == (410, "qr_code_gone")


@pytest.mark.parametrize("qr_code_id", ["qr_000000000000000000000000000", "x", "%00"])
@pytest.mark.django_db
def test_image_of_an_unknown_qr_code_is_not_found(qr_code_id: str) -> None:
    answer = Client().get(f"/Thai/qr-codes/{qr_code_id}/image")
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "qr_code_not_found")


def test_unknown_image_format_or_method_is_refused(shop: Shop) -> None:
    answer = Client().get(f"{path_of(shop.qr_code())}?format=gif")
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "invalid_format")
    assert Client().post(path_of(shop.qr_code())).status_code == 405


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        (
            "image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8",
            "image/png",
        ),  # a browser's <img>
        ("*/*", "image/png"),
        ("image/svg+xml;q=0.9", "image/svg+xml"),
        ("image/png, image/svg+xml", "image/png"),
    ],
)
def test_svg_is_sent_only_if_accept_has_svg_without_png(shop: Shop, accept: str, kind: str) -> None:
    answer = Client().get(path_of(shop.qr_code()), headers={"Accept": accept})
    assert answer.headers["Content-Type"] == kind
