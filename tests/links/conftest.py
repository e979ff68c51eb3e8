"""A shop with payment links, and the visitors of their pages."""

import re
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.test import Client

from tests.conftest import SandboxBankClient, Shop, new_client

LINKS = "/v1/payment-links"


@dataclass
class Visitor:
    """A browser at the page of a link."""

    link: dict[str, Any]
    browser: Client = field(default_factory=new_client)

    @property
    def path(self) -> str:
        return urlsplit(str(self.link["url"])).path

    def read(self, language: str = "en") -> Any:
        return self.browser.get(f"{self.path}?lang={language}")

    def pay(self, **fields: str) -> Any:
        return self.browser.post(f"{self.path}?lang=en", fields)

    def code(self, **fields: str) -> str:
        """Open the page, press Pay, and return the id of the code that is shown."""
        self.read()
        return code_of(self.pay(**fields))


def code_of(answer: Any) -> str:
    """The code of the payment page that an answer leads to."""
    assert answer.status_code == 303, answer.content
    found = re.fullmatch(r"/pay/(qr_[0-9A-Za-z]{27})\?lang=en", answer.headers["Location"])
    assert found is not None
    return found[1]


@dataclass
class LinkShop:
    shop: Shop
    bank: SandboxBankClient

    def ask(self, *, key: str | None = None, **fields: Any) -> Any:
        return self.shop.post(LINKS, fields, key=key)

    def link(self, **fields: Any) -> dict[str, Any]:
        answer = self.ask(**({"amount": 150_000} if "amount_min" not in fields else {}) | fields)
        assert answer.status_code == 200, answer.content
        made: dict[str, Any] = answer.json()
        return made

    def read(self, link: dict[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = self.shop.get(f"{LINKS}/{link['payment_link_id']}").json()
        return found

    def deactivate(self, link: dict[str, Any]) -> Any:
        return self.shop.post(f"{LINKS}/{link['payment_link_id']}/deactivate")

    def payment_of(self, qr_code_id: str) -> dict[str, Any]:
        found: dict[str, Any] = self.shop.payment(f"pay_{qr_code_id[3:]}")
        return found

    def paid(self, qr_code_id: str) -> None:
        code = self.shop.get(f"/v1/qr-codes/{qr_code_id}").json()
        assert self.bank.notify(code).status_code == 200


@pytest.fixture
def links(shop: Shop, bank: SandboxBankClient) -> LinkShop:
    return LinkShop(shop, bank)
