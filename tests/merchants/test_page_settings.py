"""How the pages for payers show a shop: which logos, colours and contacts it can have, and where they are."""

import base64
import hashlib
import io
import re
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import DatabaseError, transaction
from django.test import Client
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from core import clock
from merchants import page_settings
from merchants.draw_logo import LARGEST
from merchants.models import AA_CONTRAST, MAX_LOGO, Merchant, PageSettings
from tests.conftest import Shop
from tests.reconciliation.builders import staff_client
from tests.staff_acts import REASON, acts_of_staff, run_act

pytestmark = pytest.mark.django_db(transaction=True)
CONTACT = {"phone": "02 123 4567", "email": "help@somtam.example", "line_id": "@somtam"}


def picture(file_format: str = "PNG", size: tuple[int, int] = (600, 200), **options: Any) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", size, "#0a7d3c").save(file, file_format, **options)
    return file.getvalue()


def change(shop: Shop, **fields: Any) -> PageSettings:
    return page_settings.change(shop.merchant.pk, now=clock.now(), **fields)


def read(shop: Shop, **fields: Any) -> Any:
    return Client().get(f"/pay/{shop.qr_code(**fields)['qr_code_id']}?lang=en")


@pytest.mark.parametrize("file_format", ["PNG", "JPEG"])
def test_logo_is_drawn_anew_as_a_small_png(db: None, file_format: str) -> None:
    drawn = page_settings.drawn_logo(picture(file_format, size=(1200, 400)))
    image = Image.open(io.BytesIO(drawn))
    assert (image.format, image.size) == ("PNG", (300, 100))


def test_logo_keeps_nothing_but_pixels(db: None) -> None:
    texts = PngInfo()
    texts.add_text("Comment", "made by Somchai at 13.7563,100.5018")
    given = picture(pnginfo=texts)
    assert b"Somchai" in given
    assert b"Somchai" not in page_settings.drawn_logo(given)
    assert b"<script>" not in page_settings.drawn_logo(given + b"<script>alert(1)</script>")


@pytest.mark.parametrize(
    "given",
    [
        b"",
        b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>',
        picture("GIF"),
        picture("WEBP"),
        picture()[:60],
        picture(size=(5000, 900)),
        b"\0" * (MAX_LOGO + 1),
    ],
    ids=["empty", "svg", "gif", "webp", "broken", "many pixels", "many bytes"],
)
def test_other_files_are_refused(db: None, given: bytes) -> None:
    with pytest.raises(ValidationError):
        page_settings.drawn_logo(given)


def test_noise_fits_into_the_column(shop: Shop) -> None:
    """Nothing compresses it, so no drawn logo is larger."""
    noise = Image.merge("RGBA", [Image.effect_noise(LARGEST, 100) for _ in range(4)])
    file = io.BytesIO()
    noise.save(file, "PNG")
    assert change(shop, logo=file.getvalue()).logo == file.getvalue()


@pytest.mark.parametrize(
    "fields",
    [
        {"logo": b"<svg/>"},
        {"logo": picture() + b"\0" * MAX_LOGO},
        {"color": "red"},
        {"color": "#0A7D3C"},
        {"color": "#fff;x:url()"},
        {"phone": "call <me>"},
        {"email": "nobody"},
        {"email": "a b@shop.example"},
        {"line_id": "@a/../b"},
    ],
)
def test_database_refuses_what_pages_cannot_show(shop: Shop, fields: dict[str, Any]) -> None:
    with pytest.raises(DatabaseError), transaction.atomic():
        PageSettings.objects.create(merchant=shop.merchant, updated_at=clock.now(), **fields)


def test_page_shows_logo_colour_and_contact(shop: Shop) -> None:
    logo = page_settings.drawn_logo(picture())
    row = change(shop, logo=logo, color="#0a7d3c", **CONTACT)
    answer = read(shop)
    page = answer.content.decode()
    for shown in (
        f'src="/pay/logos/{hashlib.sha256(logo).hexdigest()}.png"',
        f"<style>{row.style}</style>",
        'href="tel:021234567"',
        'href="mailto:help@somtam.example"',
        'href="https://line.me/R/ti/p/%40somtam"',
    ):
        assert shown in page
    styles = re.findall("<style>(.+?)</style>", page)
    digest = base64.b64encode(hashlib.sha256(styles[0].encode()).digest()).decode()
    assert f"style-src 'self' 'sha256-{digest}'" in answer.headers["Content-Security-Policy"]


def test_page_of_a_shop_without_settings_has_none(shop: Shop) -> None:
    answer = read(shop)
    for hidden in ("<style>", "/pay/logos/", "<footer>"):
        assert hidden not in answer.content.decode()
    assert "style-src 'self';" in answer.headers["Content-Security-Policy"]


def test_logo_can_be_kept_by_its_address(shop: Shop) -> None:
    drawn = page_settings.drawn_logo(picture())
    row = change(shop, logo=drawn)
    path = f"/pay/logos/{row.logo_version}.png"
    answer = Client().get(path)
    assert (answer.status_code, answer.headers["Content-Type"]) == (200, "image/png")
    assert answer.content == drawn
    assert answer.headers["Cache-Control"] == "public, max-age=31536000, immutable"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    change(shop, logo=None)
    assert Client().get(path).status_code == 404
    for version in ("x", "%00", "A" * 64, "0" * 64):
        assert Client().get(f"/pay/logos/{version}.png").status_code == 404


@pytest.mark.parametrize("step", range(0, 256, 5))
def test_text_on_any_colour_has_enough_contrast(step: int) -> None:
    for color in (f"#{step:02x}{step:02x}{step:02x}", f"#{step:02x}80ff", f"#00{step:02x}30"):
        ink = PageSettings(color=color).style[-5:-1].rpartition(":")[2]
        assert _contrast(color, {"#fff": "#ffffff", "#000": "#000000"}[ink]) >= AA_CONTRAST


def _contrast(*colors: str) -> float:
    def luminance(color: str) -> float:
        parts = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    dark, light = sorted(map(luminance, colors))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.slow
def test_staff_change_the_page(shop: Shop) -> None:
    malee = staff_client("malee", "view_merchant", "set_page_settings")

    def act(**fields: Any) -> str:
        return run_act(malee, Merchant, shop.merchant.pk, "page-settings", **fields)

    assert "Enter a valid" in act(color="green")
    assert "This is no PNG or JPEG" in act(logo=SimpleUploadedFile("a.png", b"<svg/>", "image/png"))
    act(logo=SimpleUploadedFile("a.png", picture(), "image/png"), color="#0A7D3C", **CONTACT)
    row = PageSettings.objects.get()
    assert (row.color, row.phone, row.offers_new_code) == ("#0a7d3c", "02 123 4567", False)
    act(color="", offers_new_code="on", **CONTACT)
    row.refresh_from_db()
    assert (row.color, row.offers_new_code, row.logo is None) == ("", True, False)
    record = acts_of_staff().latest("id")
    assert (record.act, record.reason) == ("page_settings_changed", REASON)
    assert (record.before["color"], record.after["color"]) == ("#0a7d3c", "")
    assert record.merchant_id == shop.merchant.pk
    act(removes_logo="on")
    row.refresh_from_db()
    assert row.logo is None


def test_staff_without_the_permission_cannot(shop: Shop) -> None:
    malee = staff_client("malee", "view_merchant", "rename_merchant")
    assert malee.get(f"/admin/merchants/merchant/{shop.merchant.pk}/do/page-settings/").status_code == 403
