"""The first page of a shop."""

import pytest
from django.test import Client

from tests.conftest import SandboxBankClient, Shop
from tests.counts.closing import close_all
from tests.shop.people import person_of

pytestmark = pytest.mark.django_db(transaction=True)


def received_today(owner: Client) -> str:
    return owner.get("/shop/").text.partition("Received today")[2][:120]


def test_home_has_the_money_of_the_last_seconds(shop: Shop, bank: SandboxBankClient) -> None:
    owner = person_of(shop)
    for expected in ("1,500.00 THB", "3,000.00 THB"):
        bank.notify(shop.qr_code(amount=150_000))
        assert expected in received_today(owner)
    close_all()
    assert "3,000.00 THB" in received_today(owner)
    bank.notify(shop.qr_code(amount=100))
    shop.qr_code()
    assert "3,001.00 THB" in received_today(owner)
