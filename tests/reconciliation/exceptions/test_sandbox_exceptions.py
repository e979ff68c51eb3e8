"""Exceptions of the sandbox bank are listed after live ones, and no live metric counts them."""

from datetime import timedelta

import pytest
from django.test import Client

from banks.base import ReportedTransaction
from core import clock
from reconciliation.matching import intake, services as matching
from reconciliation.models import BankTransaction, ReconciliationException
from tests.conftest import SandboxBankClient, Shop, new_client, open_shop
from tests.reconciliation.builders import EXCEPTIONS_URL, Seller, exception_url, get_page

pytestmark = [pytest.mark.slow, pytest.mark.django_db, pytest.mark.usefixtures("audit_is_clean")]


@pytest.fixture
def sandbox_money(shop: Shop, bank: SandboxBankClient) -> BankTransaction:
    return Seller(shop, bank).unmatched()


@pytest.fixture
def live_money(sandbox_money: BankTransaction) -> BankTransaction:
    """Live money that arrived after the sandbox money."""
    now = clock.now() + timedelta(seconds=1)
    reported = ReportedTransaction(
        bank_reference="scb1",
        kind="credit",
        biller_id="099400016550100",
        reference1="NOBODYKNOWSTHIS00000",
        reference2="",
        reference3="",
        amount=150_000,
        paid_at=now,
        payer_name="",
        payer_bank_code="",
        payer_account="",
    )
    bank_transaction = intake.receive(bank="scb", body=b"{}", notification=reported, now=now)
    return matching.apply(bank_transaction_id=bank_transaction.id, now=now)


def listed(client: Client, *bank_transactions: BankTransaction, **query: str) -> list[BankTransaction]:
    """Return the bank transactions that the page shows, in its order."""
    page = get_page(client, EXCEPTIONS_URL, **query)
    found = {page.find(exception_url(each.id)): each for each in bank_transactions}
    return [found[place] for place in sorted(found) if place >= 0]


def test_live_exceptions_come_before_older_sandbox_ones(
    viewer: Client, live_money: BankTransaction, sandbox_money: BankTransaction
) -> None:
    assert listed(viewer, live_money, sandbox_money) == [live_money, sandbox_money]
    assert listed(viewer, live_money, sandbox_money, o="0") == [sandbox_money, live_money]


def test_filter_shows_live_or_sandbox_exceptions(
    viewer: Client, live_money: BankTransaction, sandbox_money: BankTransaction
) -> None:
    open_shop("Somtam House", "live")
    assert listed(viewer, live_money, sandbox_money, mode="live") == [live_money]
    assert listed(viewer, live_money, sandbox_money, mode="test") == [sandbox_money]
    assert set(ReconciliationException.objects.values_list("bank", "is_sandbox")) == {
        ("scb", False),
        ("sandbox", True),
    }


def test_metrics_count_live_and_sandbox_exceptions_separately(live_money: BankTransaction) -> None:
    shown = new_client().get("/metrics").content.decode()
    for money in ("live", "sandbox"):
        assert f'bank_transaction_exceptions{{money="{money}"}} 1.0' in shown
