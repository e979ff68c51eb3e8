"""The books under many hands at once: real threads, each with a connection of its own."""

from collections.abc import Callable
from functools import partial
from itertools import repeat
from threading import Event
from typing import Any

import pytest
from django.db import connection, transaction
from django.db.models import Sum

from core import clock, ids
from ledger import accounts
from ledger import services as ledger
from ledger.errors import InsufficientFunds
from ledger.models import Account, Entry, Journal, JournalType, PendingEntry
from tests.concurrency import run_concurrently
from tests.factories import MerchantFactory

pytestmark = pytest.mark.django_db(transaction=True)
BANK = accounts.bank("sandbox")


@pytest.fixture
def merchant_id() -> str:
    found: str = MerchantFactory().id
    return found


def told(merchant_id: str, type: JournalType, amount: int, subject_id: str = "") -> dict[str, Any]:
    at = clock.now()
    subject_id = subject_id or ids.new("sub_", at)
    return {"merchant_id": merchant_id, "type": type, "subject_id": subject_id, "amount": amount, "now": at}


@transaction.atomic
def credit(merchant_id: str, amount: int) -> None:
    ledger.credit(**told(merchant_id, JournalType.PAYMENT, amount), source=BANK)


@transaction.atomic
def take_back(merchant_id: str, amount: int) -> int:
    return ledger.reverse(**told(merchant_id, JournalType.REVERSAL, amount), to=BANK)


def reserve(merchant_id: str, amount: int) -> int:
    """One withdrawal; returns what was set aside, which is nothing where there was too little."""
    try:
        with transaction.atomic():
            ledger.reserve(**told(merchant_id, JournalType.WITHDRAWAL_RESERVED, amount))
    except InsufficientFunds:
        return 0
    return amount


def withdraw(merchant_id: str, amount: int) -> int:
    """One withdrawal from beginning to end, in two commits, as it is when a bank is asked in between."""
    subject_id = ids.new("wd_", clock.now())
    try:
        with transaction.atomic():
            ledger.reserve(**told(merchant_id, JournalType.WITHDRAWAL_RESERVED, amount, subject_id))
    except InsufficientFunds:
        return 0
    with transaction.atomic():
        ledger.pay_out(**told(merchant_id, JournalType.WITHDRAWAL_PAID, amount, subject_id), to=BANK)
    return amount


def fold() -> int:
    return ledger.roll_up_due(now=clock.now())


def times(count: int, act: Callable[[], int]) -> Callable[[], int]:
    """The act so often, one after the other; returns the sum."""
    return lambda: sum(act() for _ in repeat(None, count))


def check_books() -> None:
    """Everything sums to zero, and what each account says it holds is what its entries say."""
    by_entries = dict(Entry.objects.values_list("account_id").annotate(Sum("amount")))
    waiting = dict(PendingEntry.objects.values_list("account_id").annotate(Sum("amount")))
    assert sum(by_entries.values()) == 0
    for account in Account.objects.all():
        held = account.rolled_up_balance + waiting.get(account.id, 0)
        assert held == by_entries.get(account.id, 0), account


def test_no_more_is_withdrawn_than_there_is(merchant_id: str) -> None:
    for _ in range(50):
        credit(merchant_id, 100)
    paid = run_concurrently(*[times(2, partial(withdraw, merchant_id, 130)) for _ in range(32)])
    assert sum(paid) == 38 * 130
    assert ledger.balance(merchant_id) == ledger.Balance(5_000 - 38 * 130, 0, 0)
    check_books()


@pytest.mark.slow
def test_what_comes_in_while_money_goes_out_is_neither_lost_nor_spent_twice(merchant_id: str) -> None:
    def pay_in() -> int:
        credit(merchant_id, 100)
        return 0

    pay = [times(20, pay_in) for _ in range(8)]
    spend = [times(20, partial(withdraw, merchant_id, 70)) for _ in range(8)]
    sweep = [times(10, fold) for _ in range(2)]
    results = run_concurrently(*pay, *spend, *sweep)
    spent = sum(results[len(pay) : len(pay) + len(spend)])
    assert ledger.balance(merchant_id) == ledger.Balance(8 * 20 * 100 - spent, 0, 0)
    assert times(300, partial(withdraw, merchant_id, 70))() + spent == 16_000 // 70 * 70
    check_books()
    fold()
    check_books()
    assert not PendingEntry.objects.exists()


@pytest.mark.slow
def test_concurrent_roll_ups_handle_each_entry_once(merchant_id: str) -> None:
    others = [MerchantFactory().id for _ in range(9)]
    for each in [merchant_id, *others] * 10:
        credit(each, 100)
    run_concurrently(*[fold for _ in range(8)])
    fold()
    assert not PendingEntry.objects.exists()
    assert set(Account.objects.filter(type="available").values_list("rolled_up_balance", flat=True)) == {
        1_000
    }
    check_books()


@pytest.mark.slow
def test_debt_is_repaid_before_money_is_spent(merchant_id: str) -> None:
    assert take_back(merchant_id, 500) == 500

    def pay_in() -> int:
        credit(merchant_id, 100)
        return 0

    results = run_concurrently(*[pay_in] * 12, *[partial(reserve, merchant_id, 100)] * 12, fold, fold)
    spent = sum(results[12:24])
    balance = ledger.balance(merchant_id)
    assert balance == ledger.Balance(1_200 - 500 - spent, spent, 0)
    assert times(12, partial(reserve, merchant_id, 100))() + spent == 700
    filled = Journal.objects.filter(type=JournalType.DEBT_REPAID).aggregate(sum=Sum("amount"))["sum"]
    assert filled == 500
    check_books()


@pytest.mark.slow
def test_concurrent_reversals_and_withdrawals_take_each_satang_once(merchant_id: str) -> None:
    for _ in range(10):
        credit(merchant_id, 100)
    results = run_concurrently(
        *[partial(take_back, merchant_id, 90)] * 8, *[partial(withdraw, merchant_id, 90)] * 8, fold, fold
    )
    owed, spent = sum(results[:8]), sum(results[8:16])
    left = 1_000 - spent - 8 * 90
    assert ledger.balance(merchant_id) == ledger.Balance(max(left, 0), 0, max(-left, 0))
    assert owed == max(-left, 0)
    check_books()


@pytest.mark.slow
def test_credits_do_not_wait_for_one_another_nor_for_money_out(merchant_id: str) -> None:
    credit(merchant_id, 100)
    begun, may_end = Event(), Event()

    def hold_the_account() -> None:
        with transaction.atomic():
            ledger.credit(**told(merchant_id, JournalType.PAYMENT, 1), source=BANK)
            ledger.reserve(**told(merchant_id, JournalType.WITHDRAWAL_RESERVED, 50))
            begun.set()
            assert may_end.wait(timeout=30)

    def pay_in_meanwhile() -> None:
        try:
            assert begun.wait(timeout=30)
            with connection.cursor() as cursor:
                cursor.execute("SET lock_timeout = '10s'")
            credit(merchant_id, 7)
            fold()
            # What has not been committed is not there.
            assert ledger.balance(merchant_id) == ledger.Balance(107, 0, 0)
        finally:
            may_end.set()

    run_concurrently(hold_the_account, pay_in_meanwhile)
    assert ledger.balance(merchant_id) == ledger.Balance(58, 50, 0)
    check_books()


@pytest.mark.slow
def test_a_debt_and_its_first_accounts_are_opened_once(merchant_id: str) -> None:
    results = run_concurrently(*[partial(take_back, merchant_id, 10)] * 8)
    assert results == [10] * 8
    assert ledger.balance(merchant_id) == ledger.Balance(0, 0, 80)
    check_books()


@pytest.mark.slow
def test_first_credits_at_once_open_the_accounts_once() -> None:
    for _ in range(10):
        first: str = MerchantFactory().id
        run_concurrently(*[partial(credit, first, 100)] * 8)
        assert ledger.balance(first) == ledger.Balance(800, 0, 0)
    check_books()
