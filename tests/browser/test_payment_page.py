"""A customer in a browser: the payment page turns by itself, offline, without JavaScript, on a phone."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, ViewportSize, expect

from tests.browser.conftest import PHONE, serious_faults
from tests.flows.conftest import ShopClient
from tests.qrcodes.test_image_view import texts_in
from tests.stack import Stack

pytestmark = pytest.mark.slow
SMALL: ViewportSize = {"width": 320, "height": 568}
DESKTOP: ViewportSize = {"width": 1280, "height": 800}
SET_LOOK = """
from core import clock
from merchants import page_settings
from merchants.models import Merchant
import io
from PIL import Image
file = io.BytesIO()
Image.new("RGB", (300, 150), "#0a7d3c").save(file, "PNG")
for merchant in Merchant.objects.filter(mode="test"):
    page_settings.change(
        merchant.pk, now=clock.now(), logo=file.getvalue(), color="#ffd400", phone="02 123 4567",
        email="help@somtam.example", line_id="@somtam", offers_new_code=True,
    )
"""
WITHIN_MS = 2000
"""How soon the page asks again, by its own clock: it shows a payment within this time."""


@pytest.fixture
def customer(stack: Stack, browser: Browser) -> Iterator[BrowserContext]:
    with browser.new_context(base_url=stack.base_url, viewport=SMALL, locale="th-TH") as context:
        yield context


@pytest.fixture
def phone(stack: Stack, browser: Browser) -> Iterator[BrowserContext]:
    """A telephone: a touch screen without a pointer that hovers."""
    with browser.new_context(
        base_url=stack.base_url, viewport=PHONE, is_mobile=True, has_touch=True, locale="th-TH"
    ) as context:
        yield context


@pytest.fixture
def look(stack: Stack, shop_client: ShopClient) -> Iterator[None]:
    """The shop has a logo, a colour that needs black texts, a contact, and lets payers make new codes."""
    stack.manage("shell", "-c", SET_LOOK)
    yield
    stack.manage(
        "shell", "-c", "from merchants.models import PageSettings; PageSettings.objects.all().delete()"
    )


def is_in_sight(page: Page, selector: str) -> bool:
    """Whether nobody needs to scroll to see all of it."""
    box = page.locator(selector).bounding_box()
    return bool(box and page.viewport_size and box["y"] + box["height"] <= page.viewport_size["height"])


def open_page(context: BrowserContext, code: dict[str, Any], language: str = "en") -> Page:
    page = context.new_page()
    page.goto(f"/pay/{code['qr_code_id']}?lang={language}")
    return page


@pytest.mark.parametrize(
    ("scenario", "status", "heading"),
    [
        ("paid", "succeeded", "Paid"),
        ("declined", "failed", "The payment failed"),
    ],
)
def test_page_turns_by_itself(
    customer: BrowserContext, shop_client: ShopClient, scenario: str, status: str, heading: str
) -> None:
    code = shop_client.qr_code()
    page = open_page(customer, code)
    expect(page.get_by_role("heading", level=1)).to_have_text("Scan to pay")
    shop_client.pay(code, scenario)
    shop_client.wait_for_status(code, status)
    expect(page.get_by_role("heading", level=1)).to_have_text(heading)


def test_page_asks_often_while_it_is_shown(customer: BrowserContext, shop_client: ShopClient) -> None:
    page = customer.new_page()
    page.clock.install()
    page.goto(f"/pay/{shop_client.qr_code()['qr_code_id']}")
    for _ in range(3):
        with page.expect_response("**/state") as asked:
            page.clock.run_for(WITHIN_MS)
        assert asked.value.status == 304


def test_countdown_follows_the_server_when_the_timer_of_the_device_does_not(
    customer: BrowserContext, shop_client: ShopClient
) -> None:
    page = customer.new_page()
    page.clock.install()
    page.goto(f"/pay/{shop_client.qr_code(expiry_minutes=15)['qr_code_id']}")
    with page.expect_response("**/state"):
        page.clock.fast_forward(5 * 60_000)
    expect(page.locator("#countdown")).to_have_text(re.compile("^14:"))


def test_wrong_amount_and_end_of_the_code_appear(customer: BrowserContext, shop_client: ShopClient) -> None:
    underpaid, ended = shop_client.qr_code(), shop_client.qr_code()
    pages = open_page(customer, underpaid), open_page(customer, ended)
    shop_client.pay(underpaid, "under")
    shop_client.post(f"/v1/qr-codes/{ended['qr_code_id']}/expire", {})
    expect(pages[0].get_by_role("heading", level=1)).to_have_text("The shop checks your payment")
    expect(pages[1].get_by_role("heading", level=1)).to_have_text("This code has expired")


def test_page_comes_back_after_a_lost_connection(customer: BrowserContext, shop_client: ShopClient) -> None:
    code = shop_client.qr_code()
    page = open_page(customer, code)
    customer.set_offline(True)
    expect(page.get_by_text("No connection.")).to_be_in_viewport()
    shop_client.pay(code)
    shop_client.wait_for_status(code, "succeeded")
    customer.set_offline(False)
    expect(page.get_by_role("heading", level=1)).to_have_text("Paid")


def test_page_works_without_javascript(stack: Stack, browser: Browser, shop_client: ShopClient) -> None:
    code = shop_client.qr_code()
    with browser.new_context(base_url=stack.base_url, viewport=SMALL, java_script_enabled=False) as context:
        page = open_page(context, code)
        assert page.locator("noscript meta[http-equiv=refresh]").count() == 1
        assert page.locator("img.code").evaluate("image => image.naturalWidth") > 0
        shop_client.pay(code)
        shop_client.wait_for_status(code, "succeeded")
        page.reload()
        expect(page.get_by_role("heading", level=1)).to_have_text("Paid")


@pytest.mark.parametrize("language", ["en", "th"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.usefixtures("look")
def test_page_is_readable(
    customer: BrowserContext, shop_client: ShopClient, language: str, scheme: Any
) -> None:
    paid = shop_client.qr_code(reference="A" * 35)
    shop_client.pay(paid)
    shop_client.wait_for_status(paid, "succeeded")
    for code in (shop_client.qr_code(reference="A" * 35), paid):
        page = open_page(customer, code, language)
        page.emulate_media(color_scheme=scheme)
        assert page.locator("img.logo").evaluate("image => image.naturalWidth") == 300
        assert page.locator("header").evaluate("bar => getComputedStyle(bar).color") == "rgb(0, 0, 0)"
        for size in (SMALL, DESKTOP):
            page.set_viewport_size(size)
            assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]
            assert serious_faults(page) == []


@pytest.mark.usefixtures("look")
def test_computer_shows_all_at_once_and_asks_to_scan(
    customer: BrowserContext, shop_client: ShopClient
) -> None:
    page = open_page(customer, shop_client.qr_code(reference="A" * 35))
    page.set_viewport_size(DESKTOP)
    expect(page.get_by_role("heading", level=1)).to_have_text("Scan to pay")
    assert all(is_in_sight(page, each) for each in ("header", ".amount", ".frame", ".steps", "footer"))


@pytest.mark.parametrize("language", ["en", "th"])
@pytest.mark.usefixtures("look")
def test_phone_shows_all_at_once_and_saves_first(
    phone: BrowserContext, shop_client: ShopClient, language: str
) -> None:
    page = open_page(phone, shop_client.qr_code(reference="INV-2026-0042"), language)
    if language == "en":
        heading = "Save the picture, and pay in your banking app"
        expect(page.get_by_role("heading", level=1)).to_have_text(heading)
    assert all(is_in_sight(page, each) for each in ("header", ".amount", ".frame", ".steps"))
    save, frame = page.locator(".save-code").bounding_box(), page.locator(".frame").bounding_box()
    assert save and frame and save["y"] < frame["y"]


@pytest.mark.usefixtures("look")
def test_declined_payer_tries_again_and_saves_the_receipt(
    phone: BrowserContext, shop_client: ShopClient
) -> None:
    code = shop_client.qr_code(reference="INV-2026-0043")
    page = open_page(phone, code)
    shop_client.pay(code, "declined")
    page.get_by_role("button", name="Try again with a new code").click()
    page.wait_for_url(re.compile(r"/pay/qr_\w+\?lang=en$"))
    new_id = page.url.rpartition("/")[2].partition("?")[0]
    assert new_id != code["qr_code_id"]
    new = shop_client.get(f"/v1/qr-codes/{new_id}")
    assert (new["amount"], new["reference"]) == (code["amount"], code["reference"])
    shop_client.pay(new)
    expect(page.get_by_role("heading", level=1)).to_have_text("Paid")
    with page.expect_download() as saved:
        page.get_by_role("link", name="Save the receipt").click()
    assert saved.value.suggested_filename == f"{new['payment_id']}-receipt.png"


def test_saved_card_is_decoded(customer: BrowserContext, shop_client: ShopClient) -> None:
    code = shop_client.qr_code(reference="INV-2026-0042")
    page = open_page(customer, code)
    with page.expect_download() as saved:
        page.get_by_role("link", name="Save the picture").click()
    assert texts_in(saved.value.path().read_bytes()) == [code["qr_data"]]
