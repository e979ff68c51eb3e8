"""The first page of a shop."""

import pytest
from django.test import Client

from merchants.models import Merchant, Mode
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


@pytest.mark.parametrize("path", ["/shop/", "/shop/till", "/shop/payments/payment/"])
def test_each_page_says_that_test_money_is_no_real_money(shop: Shop, path: str) -> None:
    owner, mark = person_of(shop), '<p class="mode test">Test mode: no real money</p>'
    assert mark in owner.get(path).text
    Merchant.objects.filter(pk=shop.merchant.pk).update(mode=Mode.LIVE, bank="scb")
    assert mark not in owner.get(path).text
