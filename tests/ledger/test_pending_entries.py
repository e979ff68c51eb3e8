"""Accounts with more pending entries than one statement rolls up."""

from functools import partial
from typing import Any

import pytest
from django.db import connection, transaction
from django.db.models import Sum

from core import clock, ids
from core.errors import ServiceUnavailable
from ledger import accounts, queries, services as ledger
from ledger.errors import InsufficientFunds
from ledger.journal_types import JournalType
from ledger.models import Journal, PendingEntry
from tests.concurrency import run_concurrently
from tests.conftest import Shop
from tests.ledger.builders import BANK, MerchantLedger, check_ledger
from tests.withdrawals.builders import PATH, withdrawal_request

pytestmark = pytest.mark.django_db
STEP, MAX_STEPS, PENDING, EACH = 10, 3, 100, 100
IN_REACH = STEP * MAX_STEPS * EACH


@pytest.fixture(autouse=True)
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "ROLL_UP_STEP", STEP)
    monkeypatch.setattr(ledger, "MAX_ROLL_UP_STEPS", MAX_STEPS)


@pytest.fixture
def merchant_ledger(shop: Shop) -> MerchantLedger:
    """A merchant with many small pending credits."""
    merchant_ledger = MerchantLedger(shop.merchant.id)
    merchant_ledger.credit(EACH, count=PENDING)
    return merchant_ledger


def pending_credits(merchant_ledger: MerchantLedger) -> int:
    available = accounts.available(merchant_ledger.merchant_id)
    return PendingEntry.objects.filter(account_id=available).count()


@pytest.mark.parametrize(("amount", "steps"), [(1, 1), (STEP * EACH, 1), (STEP * EACH + 1, 2), (IN_REACH, 3)])
def test_reserve_rolls_up_only_as_many_pending_entries_as_needed(
    merchant_ledger: MerchantLedger, amount: int, steps: int
) -> None:
    merchant_ledger.reserve(amount)
    assert pending_credits(merchant_ledger) == PENDING - steps * STEP
    assert merchant_ledger.balance() == (PENDING * EACH - amount, amount, 0)
    check_ledger()


@pytest.mark.slow
def test_withdrawal_with_too_many_pending_entries_is_a_503_until_the_roll_up(
    shop: Shop, merchant_ledger: MerchantLedger
) -> None:
    asked = withdrawal_request(amount=IN_REACH + 1)
    answer = shop.post(PATH, asked, key="one")
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "5")
    assert (pending_credits(merchant_ledger), Journal.objects.count()) == (PENDING, PENDING)
    assert shop.get("/v1/balance").json()["available"] == PENDING * EACH
    ledger.roll_up_due(now=clock.now(), batch=7)
    assert shop.post(PATH, asked, key="one").status_code == 200
    check_ledger()


def test_amount_over_the_balance_is_refused_with_pending_entries(merchant_ledger: MerchantLedger) -> None:
    with pytest.raises(InsufficientFunds):
        merchant_ledger.reserve(PENDING * EACH + 1)
    assert pending_credits(merchant_ledger) == PENDING


@pytest.mark.slow
def test_reversal_is_netted_with_pending_entries(merchant_ledger: MerchantLedger) -> None:
    assert merchant_ledger.reverse(IN_REACH + 500) == 500
    assert merchant_ledger.balance() == (PENDING * EACH - IN_REACH - 500, 0, 0)
    ledger.roll_up_due(now=clock.now(), batch=7)
    assert merchant_ledger.balance() == (PENDING * EACH - IN_REACH - 500, 0, 0)
    repaid = Journal.objects.filter(type=JournalType.DEBT_REPAID).aggregate(sum=Sum("amount"))["sum"]
    assert repaid == 500
    check_ledger()


@pytest.mark.slow
def test_balance_is_read_by_index_beside_many_pending_entries_of_another_merchant(
    merchant_ledger: MerchantLedger,
) -> None:
    other = MerchantLedger()
    other.credit(EACH)
    merchant_ledger.credit(EACH, count=2_000)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE ledger_pendingentry")
        # No VACUUM runs within a test, so the planner adds reads of the table to those of the index.
        cursor.execute("SET LOCAL random_page_cost = 1")
        cursor.execute(
            f"EXPLAIN {queries.READ_BALANCES}",
            [queries.END_OF_TIME, accounts.of_merchant(other.merchant_id)],
        )
        plan = "\n".join(line for (line,) in cursor.fetchall())
    assert "Seq Scan on ledger_pendingentry" not in plan
    assert "ledger_pendingentry_pkey" in plan


def test_debt_is_repaid_before_a_withdrawal_with_pending_entries(merchant_ledger: MerchantLedger) -> None:
    assert merchant_ledger.reverse(IN_REACH + 500) == 500
    with pytest.raises(InsufficientFunds):
        merchant_ledger.reserve(6_501)
    merchant_ledger.reserve(2_000)
    assert merchant_ledger.balance() == (4_500, 2_000, 0)
    check_ledger()


def test_money_leaves_suspense_with_many_pending_entries(merchant_ledger: MerchantLedger, noon: Any) -> None:
    amounts = {ids.new("btx_", noon): EACH for _ in range(PENDING)}
    with transaction.atomic():
        ledger.hold(amounts, source=BANK, now=noon)
    ledger.send_back(subject_id=next(iter(amounts)), amount=EACH, to=BANK, now=noon)
    assert PendingEntry.objects.filter(account_id=accounts.SANDBOX_SUSPENSE).count() == PENDING - STEP
    with pytest.raises(ServiceUnavailable), transaction.atomic():
        ledger.send_back(subject_id="large", amount=IN_REACH + 1_000, to=BANK, now=noon)
    check_ledger()


def test_roll_up_continues_after_its_last_commit(
    merchant_ledger: MerchantLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, int]] = []
    next_pending = queries.next_pending

    def waiting(after: tuple[str, int], limit: int) -> list[tuple[str, int]]:
        asked.append(after)
        return next_pending(after, limit)

    monkeypatch.setattr(queries, "next_pending", waiting)
    assert ledger.roll_up_due(now=clock.now(), batch=30) == 2 * PENDING
    assert asked == sorted(set(asked))
    assert not PendingEntry.objects.exists()
    check_ledger()


def test_roll_up_stops_after_its_time_limit(
    merchant_ledger: MerchantLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger, "ROLL_UP_SECONDS", 0.0)
    assert ledger.roll_up_due(now=clock.now(), batch=30) == 0
    monkeypatch.setattr(ledger, "ROLL_UP_SECONDS", 60.0)
    assert ledger.roll_up_due(now=clock.now(), batch=30) == 2 * PENDING


@pytest.mark.django_db(transaction=True)
@pytest.mark.slow
def test_concurrent_roll_ups_withdrawals_and_credits_lose_no_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    merchant_ledgers = [MerchantLedger() for _ in range(3)]
    for each in merchant_ledgers:
        each.credit(EACH, count=PENDING)
    roll_up = partial(ledger.roll_up_due, now=clock.now(), batch=7)

    def withdraw(merchant_ledger: MerchantLedger) -> None:
        for _ in range(10):
            merchant_ledger.reserve(2 * EACH)

    withdrawals = [partial(withdraw, each) for each in merchant_ledgers for _ in range(2)]
    credits = [partial(each.credit, EACH, count=20) for each in merchant_ledgers]
    run_concurrently(*withdrawals, *credits, *[roll_up] * 3)
    roll_up()
    for each in merchant_ledgers:
        assert each.balance() == ((PENDING + 20) * EACH - 40 * EACH, 40 * EACH, 0)
    assert not PendingEntry.objects.exists()
    check_ledger()
