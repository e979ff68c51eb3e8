"""A payer who opens the claim link of a refund."""

import re
from dataclasses import dataclass
from typing import Any

from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from core import ids
from core.thai.slips import Slip, slip_payload
from qrcodes import images
from tests.conftest import SandboxBankClient, Shop
from tests.refunds.builders import REFUNDS, RefundShop

FORM = {
    "slip_reference": "",
    "last_digits": "",
    "bank_code": "004",
    "bank_account": "405-1-23456-7",
    "account_name": "สมหญิง ใจดี",
}
NO_BANK = "999"


@dataclass
class Claim:
    """A refund that waits for an account, and its link."""

    refund: dict[str, Any]
    token: str
    slip_reference: str

    @property
    def path(self) -> str:
        return f"/claim/{self.token}"

    def read(self, language: str = "en", **client: Any) -> Any:
        return Client(**client).get(f"{self.path}?lang={language}")

    @property
    def slip_picture(self) -> bytes:
        return images.png(slip_payload(Slip(NO_BANK, self.slip_reference)))

    def send_picture(self, *pictures: bytes, **fields: Any) -> Any:
        """Send the form with pictures of a slip; usually one."""
        files = [SimpleUploadedFile("slip.png", each) for each in pictures]
        return self.send(picture=files[0] if len(files) == 1 else files, **fields)

    def send(self, *, address: str = "203.0.113.7", **fields: Any) -> Any:
        """Send the form, in English."""
        return Client(REMOTE_ADDR=address).post(f"{self.path}?lang=en", FORM | fields)

    def heading(self, language: str = "en") -> str:
        found = re.search("<h1>(.+?)</h1>", self.read(language).content.decode())
        assert found is not None
        return found[1]


def waiting_refund(shop: Shop, bank: SandboxBankClient, **fields: Any) -> tuple[dict[str, Any], str]:
    """A refund to a payer at a bank that does not exist, and the reference of the slip."""
    code = shop.qr_code()
    reference = ids.random_text(20)
    bank.notify(code, payer_bank_code=NO_BANK, transaction_id=reference)
    refund = RefundShop(shop, bank).refund(code["payment_id"], **fields)
    assert refund["pending_reason"] == "awaiting_destination"
    return refund, reference


def claim_of(shop: Shop, bank: SandboxBankClient, **fields: Any) -> Claim:
    refund, reference = waiting_refund(shop, bank)
    path = f"{REFUNDS}/{refund['refund_id']}/claim-link"
    made = shop.post(path, fields)
    assert made.status_code == 200, made.content
    url = shop.get(path).json()["claim_url"]
    return Claim(refund, url.rpartition("/")[2], reference)
