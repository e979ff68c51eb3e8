"""The instance, the browser, and a shop of WooCommerce that its staff connected to the instance."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import requests
from playwright.sync_api import Browser, Locator, Page, ViewportSize

from tests.browser.conftest import browser, playwright_driver, stack
from tests.flows.conftest import ShopClient
from tests.flows.flawed_proxy import FlawedProxy
from tests.stack import Stack
from tests.systems.merchants import new_key, open_merchant
from tests.systems.woocommerce.wordpress import PASSWORD, SITE, WordPress, running_shop, unpacked

__all__ = ["browser", "playwright_driver", "stack"]
SCOPES = ("payments:write", "payments:read", "refunds:write", "webhooks:write")
LARGE: ViewportSize = {"width": 1100, "height": 1400}
SETTINGS = "/wp-admin/admin.php?page=wc-settings&tab=checkout&section=thaiqr"
AMOUNT = 15_025
"""Satang: the price of the product."""


@dataclass
class Shop:
    """The shop, and the client of its merchant with all scopes."""

    site: WordPress
    client: ShopClient
    proxy: FlawedProxy
    stack: Stack
    staff: Page
    key: str
    product: int
    pages: dict[str, int] = field(default_factory=dict)

    def settings(self, **values: str) -> None:
        """Change settings without the page of settings, which would test the connection."""
        stored = "'woocommerce_thaiqr_settings'"
        self.site.php(f"update_option( {stored}, $arguments[0] + get_option( {stored} ) );", values)

    def order(self) -> int:
        """An order that waits for its payment."""
        order_id: int = self.site.php("return new_order( $arguments[0] );", self.product)
        return order_id

    def check_out(self, order_id: int) -> dict[str, Any]:
        """Choose the method for an order; return what the checkout gets."""
        answer: dict[str, Any] = self.site.php("return check_out( $arguments[0] );", order_id)
        return answer

    def open_order(self) -> tuple[int, dict[str, Any]]:
        """An order with a code that nobody has paid; and the code."""
        order_id = self.order()
        assert self.check_out(order_id)["result"] == "success"
        return order_id, self.code(order_id)

    def code(self, order_id: int) -> dict[str, Any]:
        code: dict[str, Any] = self.client.get(
            f"/v1/qr-codes/{self.site.order(order_id)['code']['qr_code_id']}"
        )
        return code

    def paid_order(self) -> int:
        order_id, code = self.open_order()
        self.client.pay(code)
        self.site.wait_for_status(order_id, "processing")
        return order_id

    def codes_of(self, order_id: int) -> list[dict[str, Any]]:
        """All codes that were made for an order."""
        found = self.client.get(f"/v1/payments?metadata[order_id]={order_id}")
        codes: list[dict[str, Any]] = found["payments"]
        return codes

    def webhook(self) -> dict[str, Any]:
        """The webhook that the shop registered."""
        known: dict[str, Any] = self.site.php("return get_option( 'thaiqr_connection' );")
        return known

    @contextmanager
    def without_webhooks(self) -> Iterator[None]:
        """No message arrives during the block. The service holds them."""
        path = f"/v1/webhooks/{self.webhook()['webhook_id']}"
        self._patch(path, status="disabled")
        try:
            yield
        finally:
            self._patch(path, status="active")

    def _patch(self, path: str, **fields: str) -> None:
        headers = {"Authorization": f"Bearer {self.client.secret_key}"}
        answer = requests.patch(self.client.base_url + path, json=fields, headers=headers, timeout=60)
        assert answer.status_code == 200, answer.text


@pytest.fixture(scope="package")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WordPress]:
    unpacked("WORDPRESS_FOLDER")
    with running_shop(tmp_path_factory.mktemp("wordpress")) as running:
        yield running


@pytest.fixture(scope="package")
def shop(site: WordPress, stack: Stack, browser: Browser) -> Iterator[Shop]:
    """Its staff entered the address of the service and a key, in the browser."""
    known = site.php("return require $arguments[0];", str(SITE / "setup.php"))
    client = open_merchant(stack, site.url)
    key = new_key(stack, client.merchant_id, SCOPES)
    with FlawedProxy.running() as proxy, browser.new_context(base_url=site.url, viewport=LARGE) as context:
        proxy.target, proxy.flaws = stack.base_url, []
        staff = context.new_page()
        log_in(staff)
        connect(staff, proxy.base_url, key)
        yield Shop(site, client, proxy, stack, staff, key, known.pop("product"), known)


def log_in(staff: Page) -> None:
    staff.goto("/wp-login.php")
    staff.get_by_label("Username or Email Address").fill("staff")
    staff.get_by_label("Password", exact=True).fill(PASSWORD)
    staff.get_by_role("button", name="Log In").click()
    staff.wait_for_url("**/wp-admin/**")


def connect(staff: Page, address: str, key: str) -> None:
    """Enter address and key; the page says what it found."""
    staff.goto(SETTINGS)
    staff.get_by_label("Take payments by Thai QR code").check()
    staff.get_by_label("Address of the service").fill(address)
    staff.get_by_label("Secret key").fill(key)
    staff.get_by_role("button", name="Save changes").click()
    staff.wait_for_load_state()


@pytest.fixture
def customer(site: WordPress, browser: Browser) -> Iterator[Page]:
    with browser.new_context(base_url=site.url, viewport={"width": 1100, "height": 900}) as context:
        yield context.new_page()


def keep(shown: Locator, pictures: Path | None, name: str) -> None:
    """Make the picture of the guide anew, if the run shall do so."""
    if pictures:
        shown.screenshot(path=pictures / f"woocommerce-{name}.png")


@pytest.fixture
def pictures() -> Path | None:
    folder = os.environ.get("WRITE_PICTURES")
    return Path(folder) if folder else None
