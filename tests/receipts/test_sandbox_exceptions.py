"""Exceptions of the sandbox bank stand behind live ones, and no live metric counts them."""

from datetime import timedelta

import pytest
from django.test import Client

from core import clock, ids
from receipts.models import Receipt, Waiting
from receipts.models.receipts import Kind, Outcome
from tests.conftest import BankCaller, Shop, new_client
from tests.receipts.cast import Till
from tests.receipts.staff import LIST, page_of, read, staff
from transactions import accounts, ledger

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("books_are_right")]


@pytest.fixture
def onlooker(db: None) -> Client:
    return staff("onlooker", "view_receipt")


@pytest.fixture
def sandbox_money(shop: Shop, bank: BankCaller) -> Receipt:
    return Till(shop, bank).unmatched()


@pytest.fixture
def live_money(sandbox_money: Receipt) -> Receipt:
    """It came after the sandbox money."""
    now = clock.now() + timedelta(seconds=1)
    receipt = Receipt.objects.create(
        id=ids.new("rcp_", now),
        bank="scb",
        bank_transaction_id="scb1",
        kind=Kind.CREDIT,
        biller_id="099400016550100",
        reference1="NOBODYKNOWSTHIS00000",
        amount=150_000,
        paid_at=now,
        received_at=now,
        outcome=Outcome.UNMATCHED,
        judged_at=now,
    )
    ledger.hold(subject_id=receipt.id, amount=receipt.amount, source=accounts.bank("scb"), at=now)
    return receipt


def listed(client: Client, *receipts: Receipt, **query: str) -> list[Receipt]:
    """Those of them that the page shows, in its order."""
    page = read(client, LIST, **query)
    found = {page.find(page_of(receipt.id)): receipt for receipt in receipts}
    return [found[place] for place in sorted(found) if place >= 0]


def test_live_money_stands_before_older_sandbox_money(
    onlooker: Client, live_money: Receipt, sandbox_money: Receipt
) -> None:
    assert listed(onlooker, live_money, sandbox_money) == [live_money, sandbox_money]
    assert listed(onlooker, live_money, sandbox_money, o="0") == [sandbox_money, live_money]


def test_filter_shows_live_or_sandbox_money(
    onlooker: Client, live_money: Receipt, sandbox_money: Receipt
) -> None:
    assert listed(onlooker, live_money, sandbox_money, money="live") == [live_money]
    assert listed(onlooker, live_money, sandbox_money, money="sandbox") == [sandbox_money]
    assert set(Waiting.objects.values_list("bank", "is_sandbox")) == {("scb", False), ("sandbox", True)}


def test_metrics_count_live_and_sandbox_money_apart(live_money: Receipt) -> None:
    shown = new_client().get("/metrics").content.decode()
    for money in ("live", "sandbox"):
        assert f'receipts_for_staff{{money="{money}"}} 1.0' in shown
