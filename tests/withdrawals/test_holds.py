"""While a merchant has a debt, its withdrawals are held."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import DatabaseError, connection, transaction
from django.test import Client
from pytest_django import Settings

from banks import TransferResult
from core import clock
from ledger import services as ledger
from tests.approvals.builders import decide_approval, staff
from tests.conftest import Shop, open_shop
from tests.reconciliation.builders import Seller, postings_of
from tests.reconciliation.conftest import seller
from tests.refunds.builders import send_due_refunds
from tests.transfers.builders import Bank, pass_time
from tests.withdrawals.builders import PATH, fetch_withdrawal, send_due_withdrawals, withdrawn
from transfers.models import Transfer, TransferEvent
from withdrawals import services
from withdrawals.models import Withdrawal

__all__ = ["seller"]

LISTED = "/admin/withdrawals/withdrawal/"
Serving = Callable[..., Bank]
pytestmark = [pytest.mark.slow, pytest.mark.django_db, pytest.mark.usefixtures("audit_is_clean")]
SUM = 200_000


@pytest.fixture
def shop(db: None) -> Shop:
    """A shop without money."""
    return open_shop("Somtam House")


@pytest.fixture
def bank_of_shop(served_by: Serving) -> Bank:
    return served_by(sends=[TransferResult("succeeded", "b-1")])


def held(seller: Seller) -> dict[str, Any]:
    """A withdrawal of all money, whose payment the bank then reversed."""
    credit = seller.sale(SUM)
    made = withdrawn(seller.shop, amount=SUM)
    seller.reverse(credit)
    return made


def steps() -> list[str]:
    return list(TransferEvent.objects.order_by("pk").values_list("type", flat=True))


def try_again(times: int = 1) -> None:
    for _ in range(times):
        pass_time()
        send_due_withdrawals()


def metric(name: str) -> float:
    lines = Client().get("/metrics").content.decode().splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith(f"thaiqr_{name} "))


def test_withdrawal_is_not_submitted_after_reversal_of_the_money(seller: Seller, bank_of_shop: Bank) -> None:
    made = held(seller)
    try_again(3)
    assert bank_of_shop.sent == []
    shown = fetch_withdrawal(seller.shop, made)
    assert (shown["status"], shown["pending_reason"]) == ("pending", "negative_balance")
    assert seller.shop.get(PATH).json()["withdrawals"] == [shown]
    assert seller.funds() == {"available": 0, "reserved": SUM, "owed": SUM}
    assert steps() == ["queued", "held"]


def test_approval_does_not_send_a_held_withdrawal(
    seller: Seller, bank_of_shop: Bank, settings: Settings
) -> None:
    settings.APPROVAL_ITEM_LIMIT = 100_000
    made = held(seller)
    assert fetch_withdrawal(seller.shop, made)["pending_reason"] == "negative_balance"
    decide_approval(made["withdrawal_id"], "approve")
    try_again(2)
    assert (bank_of_shop.sent, fetch_withdrawal(seller.shop, made)["status"]) == ([], "pending")
    seller.sale(SUM)
    try_again()
    assert bank_of_shop.sent == [made["withdrawal_id"]]


def test_hold_ends_when_later_payments_pay_the_debt(seller: Seller, bank_of_shop: Bank) -> None:
    made = held(seller)
    try_again()
    seller.sale(SUM - 100)
    try_again()
    assert (bank_of_shop.sent, fetch_withdrawal(seller.shop, made)["pending_reason"]) == (
        [],
        "negative_balance",
    )
    seller.sale(100)
    assert fetch_withdrawal(seller.shop, made)["pending_reason"] is None
    try_again()
    assert bank_of_shop.sent == [made["withdrawal_id"]]
    assert fetch_withdrawal(seller.shop, made)["status"] == "succeeded"
    assert steps() == ["queued", "held", "submitted", "succeeded"]
    assert seller.funds() == {"available": 0, "reserved": 0}


def test_withdrawal_of_a_merchant_without_debt_is_not_held(seller: Seller, bank_of_shop: Bank) -> None:
    credit = seller.sale(SUM)
    seller.sale(SUM)
    made = withdrawn(seller.shop, amount=SUM)
    seller.reverse(credit)
    assert fetch_withdrawal(seller.shop, made)["pending_reason"] is None
    try_again()
    assert bank_of_shop.sent == [made["withdrawal_id"]]


def test_canceled_held_withdrawal_pays_the_debt_first(seller: Seller, bank_of_shop: Bank) -> None:
    credit = seller.sale(SUM)
    first, second = (withdrawn(seller.shop, amount=SUM // 2) for _ in range(2))
    seller.reverse(credit, SUM - 50_000)
    answer = seller.shop.post(f"{PATH}/{first['withdrawal_id']}/cancel")
    assert (answer.status_code, answer.json()["pending_reason"]) == (200, None)
    assert seller.funds() == {"available": 0, "reserved": SUM // 2, "owed": 50_000}
    try_again()
    assert bank_of_shop.sent == []
    assert seller.shop.post(f"{PATH}/{second['withdrawal_id']}/cancel").status_code == 200
    assert seller.funds() == {"available": 50_000, "reserved": 0}
    ledger.roll_up_due(now=clock.now())
    assert seller.funds() == {"available": 50_000, "reserved": 0}


def test_rejected_held_withdrawal_pays_the_debt(seller: Seller, settings: Settings) -> None:
    settings.APPROVAL_ITEM_LIMIT = 100_000
    made = held(seller)
    decide_approval(made["withdrawal_id"], "reject")
    assert fetch_withdrawal(seller.shop, made)["status"] == "failed"
    assert seller.funds() == {"available": 0, "reserved": 0}


def test_withdrawal_in_debt_that_did_not_reach_the_bank_is_held(seller: Seller, served_by: Serving) -> None:
    bank = served_by(sends=[TransferResult("not_sent"), TransferResult("succeeded", "b-1")])
    credit = seller.sale(SUM)
    made = withdrawn(seller.shop, amount=SUM)
    send_due_withdrawals()
    seller.reverse(credit)
    try_again(2)
    assert bank.sent == [made["withdrawal_id"]]
    assert steps() == ["queued", "submitted", "not_sent", "held"]
    seller.sale(SUM)
    try_again()
    assert fetch_withdrawal(seller.shop, made)["status"] == "succeeded"


def test_refund_of_a_merchant_in_debt_is_not_held(seller: Seller, bank_of_shop: Bank) -> None:
    first, second = seller.sale(SUM), seller.sale(SUM)
    seller.refund(str(first.payment_id), amount=SUM)
    withdrawn(seller.shop, amount=SUM)
    seller.reverse(second)
    send_due_refunds(2)
    assert seller.shop.payment(str(first.payment_id))["status"] == "refunded"


def test_staff_see_debt_and_held_withdrawals(seller: Seller) -> None:
    made, malee = held(seller), staff("malee", "view_withdrawal")
    page = malee.get(f"{LISTED}{made['withdrawal_id']}/change/").content.decode()
    assert "Merchant debt" in page
    assert "2,000.00 THB" in page
    assert made["withdrawal_id"] in malee.get(f"{LISTED}?hold=held").content.decode()
    seller.sale(SUM)
    assert made["withdrawal_id"] not in malee.get(f"{LISTED}?hold=held").content.decode()


def test_metrics_count_held_withdrawals_and_debts(seller: Seller) -> None:
    names = ["merchants_in_debt", "merchant_debt_satang", "withdrawals_held", "withdrawals_held_satang"]
    assert [metric(name) for name in names] == [0, 0, 0, 0]
    held(seller)
    seller.sale(50_000)
    assert [metric(name) for name in names] == [1, SUM - 50_000, 1, SUM]
    seller.sale(SUM)
    assert [metric(name) for name in names] == [0, 0, 0, 0]


def test_held_withdrawal_is_not_overdue(seller: Seller, bank_of_shop: Bank) -> None:
    held(seller)
    later = clock.now() + timedelta(days=2)
    assert Transfer.objects.open_since(later).count() == 1
    try_again()
    assert steps()[-1] == "held"
    assert Transfer.objects.open_since(later).count() == 0


def test_database_refuses_to_submit_a_withdrawal_in_debt(seller: Seller) -> None:
    held(seller)
    with (
        pytest.raises(DatabaseError, match="a merchant with a debt cannot send money"),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute("UPDATE transfers_transfer SET state = 'submitted', submitted_at = now()")
    assert Transfer.objects.get().state == "queued"


def test_merchant_debt_includes_pending_entries(seller: Seller) -> None:
    held(seller)
    seller.sale(SUM)
    assert services.is_in_debt(seller.shop.merchant.id) is False
    assert ledger.debts() == {}
    reversal_id = seller.reverse(seller.sale(70_000)).id
    assert postings_of(reversal_id) == [("reversal", 70_000)]
    assert Withdrawal.objects.held(ledger.debts()).count() == 0
