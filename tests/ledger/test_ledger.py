"""Each posting and its effect on the balance."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import IntegrityError

from core import clock
from ledger import services as ledger, tasks
from ledger.errors import InsufficientFunds
from ledger.models import Journal, PendingEntry
from ledger.queries import AccountNotOpen
from tests.ledger.builders import BANK, MerchantLedger, check_ledger

pytestmark = pytest.mark.django_db


@pytest.fixture
def merchant_ledger() -> MerchantLedger:
    return MerchantLedger()


# The postings in order; the balance (available, reserved, debt); the balance of the bank account.
POSTINGS: list[tuple[list[tuple[str, int]], tuple[int, int, int], int]] = [
    ([("credit", 100)], (100, 0, 0), -100),
    ([("credit", 100), ("credit", 50)], (150, 0, 0), -150),
    ([("credit", 100), ("reserve", 60)], (40, 60, 0), -100),
    ([("credit", 100), ("reserve", 100)], (0, 100, 0), -100),
    ([("credit", 100), ("reserve", 60), ("pay_out", 60)], (40, 0, 0), -40),
    ([("credit", 100), ("reserve", 60), ("release", 60)], (100, 0, 0), -100),
    ([("credit", 100), ("reserve", 60), ("release", 60), ("reserve", 100)], (0, 100, 0), -100),
    ([("credit", 100), ("reverse", 100)], (0, 0, 0), 0),
    ([("credit", 100), ("reserve", 60), ("reverse", 100)], (0, 60, 60), 0),
    ([("reverse", 70)], (0, 0, 70), 70),
    # Credits repay the debt: in the shown balance at once, in the accounts when they are rolled up.
    ([("reverse", 70), ("credit", 50)], (0, 0, 20), 20),
    ([("reverse", 70), ("credit", 100)], (30, 0, 0), -30),
    ([("reverse", 70), ("credit", 50), ("roll_up", 0)], (0, 0, 20), 20),
    ([("reverse", 70), ("credit", 100), ("roll_up", 0)], (30, 0, 0), -30),
    ([("reverse", 70), ("credit", 100), ("reserve", 30)], (0, 30, 0), -30),
    ([("reverse", 70), ("credit", 50), ("reverse", 5)], (0, 0, 25), 25),
    ([("credit", 9), ("reserve", 9), ("reverse", 9), ("release", 9), ("roll_up", 0)], (0, 0, 0), 0),
    # Suspense.
    ([("hold", 80)], (0, 0, 0), -80),
    ([("hold", 80), ("accept", 80)], (80, 0, 0), -80),
    ([("hold", 80), ("send_back", 80)], (0, 0, 0), 0),
    ([("hold", 80), ("reverse", 30), ("accept", 80)], (50, 0, 0), -50),
]


@pytest.mark.parametrize("is_rolled_up", [False, True], ids=["pending", "rolled up"])
@pytest.mark.parametrize(("postings", "balance", "at_bank"), POSTINGS, ids=str)
def test_postings_give_the_expected_balances(
    merchant_ledger: MerchantLedger,
    postings: list[tuple[str, int]],
    balance: tuple[int, ...],
    at_bank: int,
    is_rolled_up: bool,
) -> None:
    for name, amount in postings:
        post: Callable[[int], object] = getattr(merchant_ledger, name)
        post(amount)
        if is_rolled_up:
            merchant_ledger.roll_up()
    assert merchant_ledger.balance() == balance
    assert check_ledger()[BANK] == at_bank


def test_balance_of_an_unknown_merchant_is_zero(merchant_ledger: MerchantLedger) -> None:
    assert merchant_ledger.balance() == (0, 0, 0)
    with pytest.raises(InsufficientFunds):
        merchant_ledger.reserve(1)


def test_journal_type_is_posted_once_per_subject(merchant_ledger: MerchantLedger) -> None:
    merchant_ledger.credit(100, subject_id="one")
    with pytest.raises(IntegrityError, match="journal_once_per_subject_and_type"):
        merchant_ledger.credit(100, subject_id="one")
    merchant_ledger.reserve(10, subject_id="one")
    assert merchant_ledger.balance() == (90, 10, 0)


@pytest.mark.parametrize(
    ("name", "amount"), [("pay_out", 61), ("release", 61), ("accept", 6), ("send_back", 6)]
)
def test_ledger_account_cannot_be_overdrawn(merchant_ledger: MerchantLedger, name: str, amount: int) -> None:
    merchant_ledger.credit(100)
    merchant_ledger.reserve(60)
    merchant_ledger.hold(5)
    post: Callable[[int], object] = getattr(merchant_ledger, name)
    with pytest.raises(IntegrityError, match="account_not_overdrawn"):
        post(amount)
    post(amount - 1)


@pytest.mark.parametrize("name", ["pay_out", "release"])
def test_money_cannot_leave_a_ledger_account_that_does_not_exist(
    merchant_ledger: MerchantLedger, name: str
) -> None:
    with pytest.raises(AccountNotOpen):
        getattr(merchant_ledger, name)(1)
    assert not Journal.objects.exists()


def test_refused_posting_writes_no_entries(merchant_ledger: MerchantLedger) -> None:
    merchant_ledger.credit(100)
    with pytest.raises(InsufficientFunds):
        merchant_ledger.reserve(101)
    assert Journal.objects.count() == 1
    assert merchant_ledger.balance() == (100, 0, 0)


def test_roll_up_handles_all_accounts_in_batches(merchant_ledger: MerchantLedger) -> None:
    for _ in range(3):
        MerchantLedger().credit(100)
    assert ledger.roll_up_due(now=clock.now(), batch=2) == 6  # two entries of each journal
    assert not PendingEntry.objects.exists()
    assert ledger.roll_up_due(now=clock.now()) == 0


def test_roll_up_task_posts_pending_entries(merchant_ledger: MerchantLedger) -> None:
    merchant_ledger.credit(100)
    tasks.roll_up_due()
    assert not PendingEntry.objects.exists()


@pytest.mark.parametrize(
    ("name", "limit"), [("credit", 1), ("balance", 1), ("release", 2), ("pay_out", 2), ("reserve", 3)]
)
def test_posting_takes_one_statement_to_three(
    merchant_ledger: MerchantLedger, name: str, limit: int, django_assert_num_queries: Any
) -> None:
    merchant_ledger.credit(100)
    merchant_ledger.reserve(20)
    arguments = [] if name == "balance" else [20]
    savepoint = 0 if name == "balance" else 2
    with django_assert_num_queries(limit + savepoint):
        getattr(merchant_ledger, name)(*arguments)
