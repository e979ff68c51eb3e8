"""Payments of one link at the same time: each is counted once, and the last one completes the link."""

from functools import partial

import pytest

from links.models import PaymentLink
from tests.concurrency import run_concurrently
from tests.conftest import SandboxBankClient, new_client, open_shop
from tests.links.conftest import LinkShop, Visitor

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]
RACERS = 6


def test_payments_at_the_same_time_are_all_counted() -> None:
    shop = open_shop("Somtam House")
    links = LinkShop(shop, SandboxBankClient(new_client()))
    link = links.link(max_payments=RACERS)
    late, *codes = [Visitor(link) for _ in range(RACERS + 1)]
    late.read()
    made = [shop.get(f"/v1/qr-codes/{visitor.code()}").json() for visitor in codes]
    run_concurrently(*(partial(SandboxBankClient(new_client()).notify, code) for code in made))
    assert PaymentLink.objects.get().payments == RACERS
    assert (links.read(link)["status"], late.pay().status_code) == ("completed", 410)


def test_visitor_who_comes_with_the_last_payment_gets_a_code_or_is_told(db: None) -> None:
    shop = open_shop("Somtam House")
    links = LinkShop(shop, SandboxBankClient(new_client()))
    for _ in range(5):
        link = links.link()
        first, second = Visitor(link), Visitor(link)
        code = shop.get(f"/v1/qr-codes/{first.code()}").json()
        second.read()
        answers = run_concurrently(partial(links.bank.notify, code), second.pay)
        assert answers[1].status_code in (303, 410)
        assert links.read(link)["payments"] == 1
