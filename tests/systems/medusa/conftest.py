"""The instance, the browser, and a shop of Medusa that takes payments by the instance."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import requests

from tests.browser.conftest import browser, playwright_driver, stack
from tests.flows.conftest import ShopClient
from tests.flows.flawed_proxy import ProxyWithoutEvents
from tests.stack import Stack, wait_until
from tests.systems.medusa.medusa import Medusa, medusa_folder, running_shop
from tests.systems.merchants import new_key, open_merchant

__all__ = ["browser", "playwright_driver", "stack"]
SCOPES = ("payments:write", "payments:read", "refunds:write")
PROVIDER = "pp_thaiqr_thaiqr"
SECRET = "whsec_" + "bWVkdXNh" * 5
BACK = "https://shop.example/thanks"
AMOUNT = 15_025
"""Satang: the price of the product."""
ORDER_FIELDS = "id,display_id,status,payment_status,cart.id,payment_collections.payments.*,transactions.*"


@dataclass
class Checkout:
    """A cart with a session, whose `data` is the code."""

    cart_id: str
    collection_id: str
    session_id: str
    code: dict[str, Any]

    @property
    def payment_id(self) -> str:
        payment_id: str = self.code["payment_id"]
        return payment_id


@dataclass
class Shop:
    """The shop, and the client of its merchant with all scopes."""

    medusa: Medusa
    client: ShopClient
    proxy: ProxyWithoutEvents
    stack: Stack
    key: str
    webhook: str = ""

    def cart(self) -> str:
        """A cart with one product."""
        made = {"region_id": self.medusa.keys["region"], "email": "somchai@shop.example"}
        cart_id: str = self.medusa.store("POST", "/carts", made)["cart"]["id"]
        self.add_to(cart_id)
        return cart_id

    def add_to(self, cart_id: str) -> None:
        item = {"variant_id": self.medusa.keys["variant"], "quantity": 1}
        self.medusa.store("POST", f"/carts/{cart_id}/line-items", item)

    def check_out(self, cart_id: str = "", data: dict[str, Any] | None = None) -> Checkout:
        """Choose the method for a cart, as a storefront does."""
        cart_id = cart_id or self.cart()
        made = self.medusa.store("POST", "/payment-collections", {"cart_id": cart_id})
        collection_id = made["payment_collection"]["id"]
        chosen = {"provider_id": PROVIDER, "data": {"return_url": BACK, "lang": "en"} | (data or {})}
        path = f"/payment-collections/{collection_id}/payment-sessions"
        (session,) = self.medusa.store("POST", path, chosen)["payment_collection"]["payment_sessions"]
        return Checkout(cart_id, collection_id, session["id"], session["data"])

    def pay(self, checkout: Checkout, scenario: str = "paid") -> None:
        self.client.pay(checkout.code, scenario)

    def pay_unheard(self, checkout: Checkout, scenario: str = "paid") -> None:
        """Pay while no webhook arrives."""
        self.pay(checkout, scenario)
        self.client.wait_for_status(checkout.code, "succeeded")

    def end_code(self, checkout: Checkout) -> None:
        self.client.post(f"/v1/qr-codes/{checkout.code['qr_code_id']}/expire", {})

    def orders(self, checkout: Checkout) -> list[dict[str, Any]]:
        """The orders of a cart. One that is being placed has no cart yet."""
        found = self.medusa.admin("GET", f"/orders?limit=100&order=-created_at&fields={ORDER_FIELDS}")
        return [order for order in found["orders"] if (order.get("cart") or {}).get("id") == checkout.cart_id]

    def wait_for_order(self, checkout: Checkout) -> dict[str, Any]:
        wait_until(lambda: any(order["transactions"] for order in self.orders(checkout)), 60)
        (order,) = self.orders(checkout)
        return order

    def paid_order(self) -> tuple[Checkout, dict[str, Any]]:
        checkout = self.check_out()
        self.pay(checkout)
        return checkout, self.wait_for_order(checkout)

    def session(self, checkout: Checkout) -> dict[str, Any]:
        """The session of a cart, as its customer sees it."""
        fields = "fields=*payment_collection.payment_sessions"
        cart = self.medusa.store("GET", f"/carts/{checkout.cart_id}?{fields}")["cart"]
        (session,) = cart["payment_collection"]["payment_sessions"]
        found: dict[str, Any] = session
        return found

    def payment(self, order: dict[str, Any]) -> dict[str, Any]:
        """The payment of an order in the shop, with its refunds."""
        (payment,) = order["payment_collections"][0]["payments"]
        found = self.medusa.admin("GET", f"/payments/{payment['id']}?fields=*refunds,data,amount,captured_at")
        shown: dict[str, Any] = found["payment"]
        return shown

    def notes(self, checkout: Checkout) -> list[str]:
        """What the notifications of the admin say about a payment, the oldest first."""
        found = self.medusa.admin("GET", "/notifications?limit=200&order=created_at&channel=feed")
        return [
            f"{note['data']['title']}: {note['data']['description']}"
            for note in found["notifications"]
            if checkout.payment_id in note["data"]["title"]
        ]

    def read_events(self) -> None:
        """Read the feed of events now, as the job does each minute."""
        with self.proxy.with_events():
            answer = requests.post(f"{self.medusa.url}/read-events", timeout=120)
        assert answer.status_code == 200, answer.text

    def wait_for_note(self, checkout: Checkout, text: str) -> str:
        """Read events until a notification has the text."""

        def has_note() -> bool:
            self.read_events()
            return any(text in note for note in self.notes(checkout))

        wait_until(has_note, 60)
        (note,) = [note for note in self.notes(checkout) if text in note]
        return note

    def decide(self, checkout: Checkout, action: str) -> None:
        """Accept or return the money that did not fit."""
        path = f"/v1/payments/{checkout.payment_id}/exceptions"
        exception_id = self.client.get(path)["exceptions"][0]["exception_id"]
        self.client.post(f"{path}/{exception_id}/{action}", {})

    @contextmanager
    def without_webhooks(self) -> Iterator[None]:
        """No message arrives during the block, and none comes later."""
        self.client.delete(f"/v1/webhooks/{self.webhook}")
        try:
            yield
        finally:
            self.register()

    def register(self) -> None:
        url = f"{self.medusa.url}/hooks/payment/thaiqr_thaiqr"
        hook = {"url": url, "events": ["payment.succeeded"], "secret": SECRET}
        self.webhook = self.client.post("/v1/webhooks", hook)["webhook_id"]


@pytest.fixture(scope="package")
def packages() -> Path:
    return medusa_folder()


@pytest.fixture(scope="package")
def shop(packages: Path, stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    client = open_merchant(stack, BACK.removesuffix("/thanks"))
    key = new_key(stack, client.merchant_id, SCOPES)
    folder: Path = tmp_path_factory.mktemp("medusa")
    with ProxyWithoutEvents.running() as proxy:
        proxy.target, proxy.flaws = stack.base_url, []
        options = {"THAIQR_BASE_URL": proxy.base_url, "THAIQR_API_KEY": key, "THAIQR_WEBHOOK_SECRET": SECRET}
        with running_shop(packages, folder, **options) as medusa:
            shop = Shop(medusa, client, proxy, stack, key)
            shop.register()
            yield shop


def post(shop: Shop, body: bytes, headers: dict[str, str]) -> int:
    """Send the shop a message; return the status of its answer."""
    url = f"{shop.medusa.url}/hooks/payment/thaiqr_thaiqr"
    return requests.post(url, body, headers=headers, timeout=60).status_code
