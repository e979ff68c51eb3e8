"""The instance, the browser, and a shop of Odoo that its staff connected to the instance."""

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
from tests.systems.merchants import new_key, open_merchant
from tests.systems.odoo.odoo import Form, Odoo, form_of, json_rpc, odoo_program, running_shop

__all__ = ["browser", "playwright_driver", "stack"]
SCOPES = ("payments:write", "payments:read", "refunds:write", "webhooks:write")
AMOUNT = 15_025
"""Satang: the price of the product."""
BAHT = AMOUNT / 100
SHOWN = [
    "reference",
    "state",
    "state_message",
    "amount",
    "provider_reference",
    "thai_qr_id",
    "is_post_processed",
]


@dataclass
class Payment:
    """A payment of a customer for a document: a transaction with a code."""

    document: tuple[str, int]
    browser: requests.Session
    form: Form
    tx_id: int
    code: dict[str, Any]


@dataclass
class Shop:
    """The shop, and the client of its merchant with all scopes."""

    odoo: Odoo
    client: ShopClient
    proxy: ProxyWithoutEvents
    stack: Stack
    key: str

    @property
    def provider(self) -> int:
        return self.odoo.ids["provider"]

    def settings(self, **values: Any) -> None:
        self.odoo.call("payment.provider", "write", [self.provider], values)

    def connect(self) -> dict[str, Any]:
        """Press the button; return what the page shows."""
        with self.proxy.with_events():
            action = self.odoo.call("payment.provider", "action_thai_qr_connect", [self.provider])
        shown: dict[str, Any] = action["params"]
        return shown

    def order(self, quantity: int = 1) -> int:
        """A quotation that the customer confirms by paying."""
        line = {"product_id": self.odoo.ids["product"], "product_uom_qty": quantity}
        values = {
            "partner_id": self.odoo.ids["customer"],
            "require_payment": True,
            "require_signature": False,
            "prepayment_percent": 1.0,
            "order_line": [[0, 0, line]],
        }
        order_id: int = self.odoo.call("sale.order", "create", values)
        return order_id

    def invoice(self) -> int:
        line = {"product_id": self.odoo.ids["product"], "quantity": 1, "tax_ids": [[5]]}
        values = {
            "move_type": "out_invoice",
            "partner_id": self.odoo.ids["customer"],
            "invoice_line_ids": [[0, 0, line]],
        }
        invoice_id: int = self.odoo.call("account.move", "create", values)
        self.odoo.call("account.move", "action_post", [invoice_id])
        return invoice_id

    def portal(self, model: str, row_id: int) -> str:
        """The address of the page where the customer pays a document."""
        link = self.odoo.call(
            "payment.link.wizard",
            "create",
            {"res_model": model, "res_id": row_id},
            context={"active_model": model, "active_id": row_id},
        )
        address: str = self.odoo.read("payment.link.wizard", link, "link")["link"]
        return address

    def start(self, model: str, row_id: int, customer: requests.Session | None = None) -> Payment:
        """Choose the method on the page of a document, as the script of that page does."""
        customer = customer or requests.Session()
        page = customer.get(self.portal(model, row_id), timeout=120)
        assert page.status_code == 200, page.text
        token = self.odoo.read(model, row_id, "access_token")["access_token"]
        path = (
            f"/my/orders/{row_id}/transaction" if model == "sale.order" else f"/invoice/transaction/{row_id}"
        )
        total = self.odoo.read(model, row_id, "amount_total")["amount_total"]
        given = {
            "provider_id": self.provider,
            "payment_method_id": self.odoo.ids["method"],
            "token_id": None,
            "amount": total,
            "flow": "redirect",
            "tokenization_requested": False,
            "landing_route": page.url.removeprefix(self.odoo.url),
            "access_token": token,
        }
        made = json_rpc(customer, self.odoo.url + path, given)
        form = form_of(made["redirect_form_html"])
        code = self.client.get(f"/v1/qr-codes/{form.url.rpartition('/')[2]}")
        (tx_id,) = self.odoo.call("payment.transaction", "search", [["reference", "=", made["reference"]]])
        return Payment((model, row_id), customer, form, tx_id, code)

    def start_order(self, quantity: int = 1) -> Payment:
        return self.start("sale.order", self.order(quantity))

    def pay(self, payment: Payment, scenario: str = "paid") -> None:
        self.client.pay(payment.code, scenario)

    def pay_unheard(self, payment: Payment) -> None:
        """Pay while no webhook arrives."""
        self.pay(payment)
        self.client.wait_for_status(payment.code, "succeeded")

    def paid(self, model: str = "sale.order") -> Payment:
        payment = self.start(model, self.order() if model == "sale.order" else self.invoice())
        self.pay(payment)
        self.wait_for_posting(payment)
        return payment

    def end_code(self, payment: Payment) -> None:
        self.client.post(f"/v1/qr-codes/{payment.code['qr_code_id']}/expire", {})

    def tx(self, payment: Payment) -> dict[str, Any]:
        return self.odoo.read("payment.transaction", payment.tx_id, *SHOWN)

    def wait_for_state(self, payment: Payment, state: str, seconds: float = 60) -> dict[str, Any]:
        wait_until(lambda: bool(self.tx(payment)["state"] == state), seconds)
        return self.tx(payment)

    def wait_for_posting(self, payment: Payment) -> dict[str, Any]:
        """Wait until the payment is in the books; return it."""
        wait_until(
            lambda: bool(self.tx(payment)["is_post_processed"] and self.tx(payment)["state"] == "done"), 150
        )
        return self.posting(payment)

    def posting(self, payment: Payment) -> dict[str, Any]:
        domain = [["payment_transaction_id", "=", payment.tx_id]]
        # Odoo 17 has another name for the memo.
        memo = "memo" if self.odoo.call("account.payment", "fields_get", ["memo"]) else "ref"
        names = ["amount", "state", memo, "payment_type", "amount_available_for_refund"]
        (found,) = self.odoo.call("account.payment", "search_read", domain, names)
        posted: dict[str, Any] = found | {"memo": found[memo]}
        return posted

    def notes(self, payment: Payment) -> list[str]:
        """The messages on the document of a payment, the oldest first."""
        model, row_id = payment.document
        domain = [["model", "=", model], ["res_id", "=", row_id]]
        return [
            each["body"]
            for each in self.odoo.call("mail.message", "search_read", domain, ["body"], order="id")
        ]

    def wait_for_note(self, payment: Payment, text: str) -> None:
        wait_until(lambda: any(text in note for note in self.notes(payment)), 60)

    def read_events(self) -> None:
        """Read the events now, as the action does each minute."""
        with self.proxy.with_events():
            self.odoo.run_cron("cron")

    def decide(self, payment: Payment, action: str, **fields: str) -> None:
        """Accept or return the money that did not fit."""
        path = f"/v1/payments/{payment.code['payment_id']}/exceptions"
        exception_id = self.client.get(path)["exceptions"][0]["exception_id"]
        self.client.post(f"{path}/{exception_id}/{action}", fields)

    def hooks(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.client.get("/v1/webhooks?limit=100")["webhooks"]
        return found

    @contextmanager
    def without_webhooks(self) -> Iterator[None]:
        """No message arrives during the block, and none comes later."""
        for hook in self.hooks():
            self.client.delete(f"/v1/webhooks/{hook['webhook_id']}")
        try:
            yield
        finally:
            assert self.connect()["type"] == "success"


@pytest.fixture(scope="package")
def odoo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Odoo]:
    odoo_program()
    folder: Path = tmp_path_factory.mktemp("odoo")
    with running_shop(folder) as running:
        yield running


@pytest.fixture(scope="package")
def shop(odoo: Odoo, stack: Stack) -> Iterator[Shop]:
    """Its staff entered the address of the service and a key, and pressed the button."""
    client = open_merchant(stack, odoo.url)
    key = new_key(stack, client.merchant_id, SCOPES)
    with ProxyWithoutEvents.running() as proxy:
        proxy.target, proxy.flaws = stack.base_url, []
        shop = Shop(odoo, client, proxy, stack, key)
        shop.settings(thai_qr_address=proxy.base_url, thai_qr_key=key, state="test", is_published=True)
        assert shop.connect()["type"] == "success"
        yield shop
