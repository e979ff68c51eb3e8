"""A slip at the till: is it for this shop, real and new, and what did it pay? Of others it says nothing."""

from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from console.people.roles import ShopRole
from core import clock, ids
from core.http.rate_limits import RateLimit
from core.thai.slips import Slip, slip_payload
from core.work import decoders
from qrcodes import images
from reconciliation.models import BankTransaction, SlipCheck
from shop.till import slips
from tests.conftest import SandboxBankClient, Shop
from tests.reconciliation.builders import Seller
from tests.shop.people import person_of

pytestmark = [pytest.mark.slow, pytest.mark.django_db]
NEW = ("success", "Nobody has shown this slip before.")


@pytest.fixture(autouse=True)
def pictures_may_take_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine may be slow."""
    monkeypatch.setattr(decoders.PICTURE_OF_MERCHANT, "timeout_seconds", 120.0)
    monkeypatch.setattr(decoders.PICTURE_OF_MERCHANT, "wait_seconds", 120.0)


@pytest.fixture
def cashier(shop: Shop) -> Client:
    return person_of(shop, ShopRole.CASHIER)


def show(client: Client, payload: str) -> list[tuple[str, str]]:
    """What the till says about a picture of this code."""
    return send(client, images.png(payload))


def send(client: Client, picture: bytes) -> list[tuple[str, str]]:
    answer = client.post("/shop/till/slip", {"picture": SimpleUploadedFile("slip", picture)})
    assert answer.status_code == 200
    return [(each["level"], each["text"]) for each in answer.json()["findings"]]


def transfer(shop: Shop, bank: SandboxBankClient, **changes: Any) -> tuple[str, BankTransaction]:
    """The text of the slip of money that arrived, and the money."""
    slip = ids.random_text(20, "0123456789ABCDEF")
    code = changes.pop("code", None) or shop.qr_code(reference="Table 4")
    return slip_payload(Slip("014", slip)), Seller(shop, bank).report(code, slip_reference=slip, **changes)


def test_slip_of_a_paid_order_is_real_ours_and_new(
    shop: Shop, bank: SandboxBankClient, cashier: Client
) -> None:
    slip, _money = transfer(shop, bank)
    real, paid, new = show(cashier, slip)
    assert real[1].startswith("It is real, and for this shop: 1,500.00 THB on ")
    assert (paid, new) == (("success", "Order Table 4 is paid."), NEW)
    assert SlipCheck.objects.get().actor == "person:cashier-somtam"


def test_slip_that_is_shown_again_is_not_new(shop: Shop, bank: SandboxBankClient, cashier: Client) -> None:
    slip, _money = transfer(shop, bank)
    first = clock.display(clock.now())[:-3]
    show(cashier, slip)
    with time_machine.travel(clock.now() + timedelta(minutes=5)):
        *_, (level, text) = show(person_of(shop), slip)
    assert level == "error"
    assert text.startswith(f"This slip was shown before, on {first}")


def test_slip_of_money_that_nobody_reported_proves_nothing(cashier: Client) -> None:
    ((level, text),) = show(cashier, slip_payload(Slip("014", "A1")))
    assert (level, text[:36]) == ("warning", "No bank has reported this money. Do ")


def test_slip_of_money_for_another_shop_shows_nothing_of_it(
    other_shop: Shop, bank: SandboxBankClient, cashier: Client
) -> None:
    slip, _money = transfer(other_shop, bank)
    show(person_of(other_shop), slip)
    assert show(cashier, slip) == [("error", "This money is not for this shop.")]


def test_slip_of_another_amount_paid_no_order(shop: Shop, bank: SandboxBankClient, cashier: Client) -> None:
    slip, _money = transfer(shop, bank, satang=149_900)
    real, paid = show(cashier, slip)
    assert ("1,499.00 THB" in real[1], paid[0]) == (True, "warning")


def test_slip_of_money_that_the_bank_took_back_is_an_error(
    shop: Shop, bank: SandboxBankClient, cashier: Client
) -> None:
    slip, money = transfer(shop, bank)
    Seller(shop, bank).reverse(money)
    assert show(cashier, slip) == [
        ("error", "There is no such money: nobody sent it, or it went back to the payer.")
    ]


@pytest.mark.parametrize("picture", [b"", b"no picture", images.png("hello")])
def test_picture_without_a_slip_is_explained(cashier: Client, picture: bytes) -> None:
    ((level, text),) = send(cashier, picture)
    assert level == "error"
    assert text
    assert not SlipCheck.objects.exists()


def test_payment_code_is_no_slip(shop: Shop, cashier: Client) -> None:
    ((level, text),) = show(cashier, shop.qr_code()["qr_data"])
    assert (level, text[:26]) == ("error", "This is a payment QR code,")


def test_slips_of_a_shop_are_limited(cashier: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slips, "RATE", RateLimit(per_second=0.01, burst=1))
    send(cashier, b"no picture")
    ((level, text),) = send(cashier, b"no picture")
    assert (level, "Try again" in text) == ("error", True)
