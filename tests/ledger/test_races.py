"""Concurrent postings by threads, each with its own connection."""

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from threading import Event

import pytest
import time_machine
from django.db import connection, transaction
from django.db.models import Sum

from core import clock
from ledger import services as ledger
from ledger.balance_transactions import balances_after
from ledger.errors import InsufficientFunds
from ledger.journal_types import JournalType
from ledger.models import Account, BalanceTransaction, Entry, Journal, PendingEntry
from tests.concurrency import run_concurrently
from tests.ledger.builders import MerchantLedger, check_ledger

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def merchant_ledger() -> MerchantLedger:
    return MerchantLedger()


def reserve(merchant_ledger: MerchantLedger, amount: int) -> int:
    """Return what was reserved: zero if the balance was too small."""
    try:
        merchant_ledger.reserve(amount)
    except InsufficientFunds:
        return 0
    return amount


def withdraw(merchant_ledger: MerchantLedger, amount: int) -> int:
    """Reserve and pay out in two commits, as for a withdrawal. Return the amount, or zero."""
    if not reserve(merchant_ledger, amount):
        return 0
    merchant_ledger.pay_out(amount)
    return amount


def repeat(count: int, function: Callable[[], int | None]) -> Callable[[], int]:
    """Return a function that calls another one `count` times and returns the sum."""
    return lambda: sum(function() or 0 for _ in range(count))


def test_concurrent_reserves_never_exceed_the_balance(merchant_ledger: MerchantLedger) -> None:
    for _ in range(50):
        merchant_ledger.credit(100)
    paid = run_concurrently(*[repeat(2, partial(withdraw, merchant_ledger, 130)) for _ in range(32)])
    assert sum(paid) == 38 * 130
    assert merchant_ledger.balance() == (5_000 - 38 * 130, 0, 0)
    check_ledger()


def test_credits_during_withdrawals_are_neither_lost_nor_spent_twice(merchant_ledger: MerchantLedger) -> None:
    credits = [repeat(20, partial(merchant_ledger.credit, 100)) for _ in range(8)]
    withdrawals = [repeat(20, partial(withdraw, merchant_ledger, 70)) for _ in range(8)]
    roll_ups = [repeat(10, merchant_ledger.roll_up) for _ in range(2)]
    results = run_concurrently(*credits, *withdrawals, *roll_ups)
    spent = sum(results[len(credits) : len(credits) + len(withdrawals)])
    assert merchant_ledger.balance() == (8 * 20 * 100 - spent, 0, 0)
    assert repeat(300, partial(withdraw, merchant_ledger, 70))() + spent == 16_000 // 70 * 70
    check_ledger()
    merchant_ledger.roll_up()
    check_ledger()
    assert not PendingEntry.objects.exists()


def test_concurrent_roll_ups_handle_each_entry_once(merchant_ledger: MerchantLedger) -> None:
    for each in [merchant_ledger, *(MerchantLedger() for _ in range(9))] * 10:
        each.credit(100)
    run_concurrently(*[merchant_ledger.roll_up] * 8)
    merchant_ledger.roll_up()
    assert not PendingEntry.objects.exists()
    balances = Account.objects.filter(type="available").values_list("rolled_up_balance", flat=True)
    assert set(balances) == {1_000}
    check_ledger()


def test_merchant_debt_is_repaid_before_new_withdrawals(merchant_ledger: MerchantLedger) -> None:
    assert merchant_ledger.reverse(500) == 500
    results = run_concurrently(
        *[repeat(1, partial(merchant_ledger.credit, 100))] * 12,
        *[partial(reserve, merchant_ledger, 100)] * 12,
        *[merchant_ledger.roll_up] * 2,
    )
    spent = sum(results[12:24])
    assert merchant_ledger.balance() == (1_200 - 500 - spent, spent, 0)
    assert repeat(12, partial(reserve, merchant_ledger, 100))() + spent == 700
    repaid = Journal.objects.filter(type=JournalType.DEBT_REPAID).aggregate(sum=Sum("amount"))["sum"]
    assert repaid == 500
    check_ledger()


def test_concurrent_reversals_and_withdrawals_spend_no_money_twice(merchant_ledger: MerchantLedger) -> None:
    for _ in range(10):
        merchant_ledger.credit(100)
    results = run_concurrently(
        *[partial(merchant_ledger.reverse, 90)] * 8,
        *[partial(withdraw, merchant_ledger, 90)] * 8,
        *[merchant_ledger.roll_up] * 2,
    )
    debt, spent = sum(results[:8]), sum(results[8:16])
    left = 1_000 - spent - 8 * 90
    assert merchant_ledger.balance() == (max(left, 0), 0, max(-left, 0))
    assert debt == max(-left, 0)
    check_ledger()


def test_credits_do_not_wait_for_other_credits_or_withdrawals(merchant_ledger: MerchantLedger) -> None:
    merchant_ledger.credit(100)
    is_locked, may_commit = Event(), Event()

    def lock_the_account() -> None:
        with transaction.atomic():
            merchant_ledger.credit(1)
            merchant_ledger.reserve(50)
            is_locked.set()
            assert may_commit.wait(timeout=30)

    def credit_meanwhile() -> None:
        try:
            assert is_locked.wait(timeout=30)
            with connection.cursor() as cursor:
                cursor.execute("SET lock_timeout = '10s'")
            merchant_ledger.credit(7)
            merchant_ledger.roll_up()
            # Uncommitted entries do not count.
            assert merchant_ledger.balance() == (107, 0, 0)
        finally:
            may_commit.set()

    run_concurrently(lock_the_account, credit_meanwhile)
    assert merchant_ledger.balance() == (58, 50, 0)
    check_ledger()


def test_concurrent_first_reversals_create_the_ledger_accounts_once(merchant_ledger: MerchantLedger) -> None:
    results = run_concurrently(*[partial(merchant_ledger.reverse, 10)] * 8)
    assert results == [10] * 8
    assert merchant_ledger.balance() == (0, 0, 80)
    check_ledger()


def test_concurrent_first_credits_create_the_ledger_accounts_once() -> None:
    for _ in range(10):
        first = MerchantLedger()
        run_concurrently(*[partial(first.credit, 100)] * 8)
        assert first.balance() == (800, 0, 0)
    check_ledger()


def balances_over_time(merchant_ledger: MerchantLedger) -> list[tuple[int, int]]:
    """Available and reserved after each balance transaction, in the order of their times."""
    rows = list(BalanceTransaction.objects.order_by("created_at", "id"))
    found = balances_after(merchant_ledger.merchant_id, rows)
    return [(found[row.id].available, found[row.id].reserved) for row in rows]


def test_withdrawal_that_read_the_clock_before_a_credit_is_posted_after_it(
    merchant_ledger: MerchantLedger,
) -> None:
    before = clock.now()
    merchant_ledger.credit(100)
    later = clock.now() + timedelta(seconds=2)  # on a machine whose clock is ahead
    with time_machine.travel(later, tick=False):
        merchant_ledger.credit(30)
    merchant_ledger.reserve(130, now=before)
    merchant_ledger.pay_out(130)
    assert balances_over_time(merchant_ledger) == [(100, 0), (130, 0), (0, 130), (0, 0)]
    newest = BalanceTransaction.objects.latest("created_at").created_at
    for at in (newest, newest + timedelta(milliseconds=1)):
        held = ledger.balance(merchant_ledger.merchant_id, before=at)
        assert (held.available, held.debt) == (0, 0)


def test_no_balance_was_ever_negative_after_a_race(merchant_ledger: MerchantLedger) -> None:
    """Threads credit, reserve what is there, and pay out or release it. Each reads the clock first."""

    def spend(ends: Callable[[int], None]) -> int:
        if taken := reserve(merchant_ledger, 100):
            ends(taken)
        return taken

    run_concurrently(
        *[repeat(30, partial(merchant_ledger.credit, 100))] * 4,
        *[repeat(30, partial(spend, merchant_ledger.pay_out))] * 4,
        *[repeat(30, partial(spend, merchant_ledger.release))] * 4,
        repeat(10, merchant_ledger.roll_up),
    )
    balances = balances_over_time(merchant_ledger)
    assert min(min(each) for each in balances) >= 0
    available, reserved, _ = merchant_ledger.balance()
    assert balances[-1] == (available, reserved)
    debits = Entry.objects.filter(amount__lt=0, account__type__in=["available", "reserved"])
    for account in debits.values_list("account", flat=True).distinct():
        times = debits.filter(account=account).order_by("id").values_list("created_at", flat=True)
        assert list(times) == sorted(set(times))
    check_ledger()
