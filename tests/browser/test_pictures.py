"""The pictures of the README and the guide are of the real pages. `make pictures` writes them anew."""

import io
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from PIL import Image
from playwright.sync_api import Browser, Page, ViewportSize, expect

from apidocs.guide.pages import FOLDER, PICTURES
from tests.browser.test_till import PASSWORD, open_till, pay, shown_code
from tests.flows.conftest import ShopClient
from tests.stack import Stack

pytestmark = pytest.mark.slow
GAP, GROUND = 16, "#cfd6df"
MAX_BYTES, COLORS = 60_000, 64
SCALE = 0.75
COMPUTER: ViewportSize = {"width": 920, "height": 580}
PHONE: ViewportSize = {"width": 390, "height": 580}
LONG_PHONE: ViewportSize = {"width": 390, "height": 780}
LOOK = f"""
from django.contrib.auth.models import User
from core import clock
from merchants import page_settings
from merchants.models import Merchant
from shop.models import Membership
now, merchant = clock.now(), Merchant.objects.get(pk="{{0}}")
page_settings.change(
    merchant.pk, now=now, color="#0b7d3b", phone="02 123 4567", email="help@somtam.example", line_id="@somtam"
)
user = User.objects.create_user("somsri", password="{PASSWORD}")
Membership.objects.create(user_id=user.pk, merchant=merchant, role="cashier", created_at=now)
"""


@pytest.fixture(scope="module")
def shop(stack: Stack) -> ShopClient:
    """A shop with a look of its own, and its cashier `somsri`."""
    made = json.loads(stack.manage("create_merchant", "--name", "Somtam House", "--mode", "test", "--json"))
    stack.manage("shell", "-c", LOOK.format(made["merchant_id"]))
    return ShopClient(stack.base_url, made["secret_key"], made["merchant_id"])


def test_picture_of_the_payment_page(stack: Stack, browser: Browser, shop: ShopClient) -> None:
    code = shop.qr_code(reference="INV-2026-0042", expiry_minutes=1440)
    with window(stack, browser, COMPUTER) as page:
        page.goto(f"{code['payment_page_url']}?lang=en")
        expect(page.locator("img.code")).to_be_visible()
        open_page = page.screenshot()
    pay(shop, code)
    with window(stack, browser, PHONE) as page:
        page.goto(f"{code['payment_page_url']}?lang=th")
        expect(page.get_by_role("heading", level=1)).to_have_text("จ่ายเงินแล้ว")
        save("payment-page.png", open_page, page.screenshot())


def test_picture_of_the_till(stack: Stack, browser: Browser, shop: ShopClient) -> None:
    with window(stack, browser, LONG_PHONE) as page:
        page.goto("/shop/till")
        page.get_by_label("Username").fill("somsri")
        page.get_by_label("Password").fill(PASSWORD)
        page.get_by_role("button", name="Log in").click()
        page.wait_for_url("**/shop/till")
        till = open_till(page.context)
        till.get_by_role("button", name="1", exact=True).click()
        for _ in range(2):
            till.get_by_role("button", name="0", exact=True).click()
        till.locator("#reference").fill("Table 4")
        pad = till.screenshot()
        till.locator("#pad .button").click()
        code = shown_code(till, shop)
        shown = till.screenshot()
        pay(shop, code)
        expect(till.locator("#code")).to_have_class("paid")
        save("till.png", pad, shown, till.screenshot())


def test_pictures_of_the_guide_are_small() -> None:
    assert {f"pictures/{path.name}" for path in (FOLDER / "pictures").iterdir()} == PICTURES
    assert all((FOLDER / name).stat().st_size < MAX_BYTES for name in PICTURES)


@contextmanager
def window(stack: Stack, browser: Browser, viewport: ViewportSize) -> Iterator[Page]:
    with browser.new_context(base_url=stack.base_url, viewport=viewport, locale="en-US") as context:
        yield context.new_page()


def save(name: str, *screenshots: bytes) -> None:
    """Put the screenshots beside each other, smaller. Only PICTURES, a folder, makes it write the file."""
    found = [Image.open(io.BytesIO(each)).convert("RGB") for each in screenshots]
    shots = [each.resize((int(each.width * SCALE), int(each.height * SCALE))) for each in found]
    width = sum(shot.width for shot in shots) + GAP * (len(shots) - 1)
    whole, left = Image.new("RGB", (width, max(shot.height for shot in shots)), GROUND), 0
    for shot in shots:
        whole.paste(shot, (left, 0))
        left += shot.width + GAP
    written = io.BytesIO()
    whole.quantize(COLORS).save(written, "PNG", optimize=True)
    assert len(written.getvalue()) < MAX_BYTES
    if folder := os.environ.get("PICTURES"):
        Path(folder, name).write_bytes(written.getvalue())
