"""More entries is pending than one statement rolls up: nothing takes longer, and no money is lost."""

from functools import partial
from typing import Any

import pytest
from django.db import connection, transaction
from django.db.models import Sum

from core import clock, ids
from core.errors import ServiceUnavailable
from ledger import accounts, bulk, postings
from ledger import services as ledger
from ledger.bulk import Credit
from ledger.errors import InsufficientFunds
from ledger.models import Account, Entry, Journal, JournalType, PendingEntry
from tests.concurrency import run_concurrently
from tests.conftest import Shop
from tests.factories import MerchantFactory
from tests.withdrawals.builders import PATH, withdrawal_request

pytestmark = pytest.mark.django_db
BANK = accounts.bank("sandbox")
STEP, MOST_STEPS, WAITING, EACH = 10, 3, 100, 100
IN_REACH = STEP * MOST_STEPS * EACH


@pytest.fixture(autouse=True)
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "ROLL_UP_STEP", STEP)
    monkeypatch.setattr(ledger, "MAX_ROLL_UP_STEPS", MOST_STEPS)


@pytest.fixture
def merchant_id(shop: Shop) -> str:
    """Of a shop for which many small credits wait."""
    found: str = shop.merchant.id
    pay_in(found, WAITING)
    return found


@transaction.atomic
def pay_in(merchant_id: str, count: int) -> None:
    at = clock.now()
    credits = [Credit(merchant_id, ids.new("pay_", at), EACH) for _ in range(count)]
    bulk.credit_all(JournalType.PAYMENT, credits, source=BANK, now=at)


def told(merchant_id: str, type: JournalType, amount: int) -> dict[str, Any]:
    at = clock.now()
    subject_id = ids.new("sub_", at)
    return {"merchant_id": merchant_id, "type": type, "subject_id": subject_id, "amount": amount, "now": at}


@transaction.atomic
def reserve(merchant_id: str, amount: int) -> None:
    ledger.reserve(**told(merchant_id, JournalType.WITHDRAWAL_RESERVED, amount))


@transaction.atomic
def take_back(merchant_id: str, amount: int) -> int:
    return ledger.reverse(**told(merchant_id, JournalType.REVERSAL, amount), to=BANK)


def left(merchant_id: str) -> int:
    return PendingEntry.objects.filter(account_id=accounts.available(merchant_id)).count()


def check_books() -> None:
    waiting = dict(PendingEntry.objects.values_list("account_id").annotate(Sum("amount")))
    by_entries = dict(Entry.objects.values_list("account_id").annotate(Sum("amount")))
    held = {each.id: each.rolled_up_balance + waiting.get(each.id, 0) for each in Account.objects.all()}
    assert held == {code: by_entries.get(code, 0) for code in held}
    assert sum(by_entries.values()) == 0


@pytest.mark.parametrize(
    ("amount", "folded"), [(1, 1), (STEP * EACH, 1), (STEP * EACH + 1, 2), (IN_REACH, 3)]
)
def test_money_out_rolls_up_only_the_entries_it_needs(merchant_id: str, amount: int, folded: int) -> None:
    reserve(merchant_id, amount)
    assert left(merchant_id) == WAITING - folded * STEP
    assert ledger.balance(merchant_id) == ledger.Balance(WAITING * EACH - amount, amount, 0)
    check_books()


def test_withdrawal_with_too_many_pending_entries_is_a_503_until_the_roll_up(
    shop: Shop, merchant_id: str
) -> None:
    asked = withdrawal_request(amount=IN_REACH + 1)
    answer = shop.post(PATH, asked, key="one")
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "5")
    assert (left(merchant_id), Journal.objects.count()) == (WAITING, WAITING)
    assert shop.get("/v1/balance").json()["available"] == WAITING * EACH
    ledger.roll_up_due(now=clock.now(), batch=7)
    assert shop.post(PATH, asked, key="one").status_code == 200
    check_books()


def test_amount_over_the_balance_is_refused_with_pending_entries(merchant_id: str) -> None:
    with pytest.raises(InsufficientFunds):
        reserve(merchant_id, WAITING * EACH + 1)
    assert left(merchant_id) == WAITING


def test_reversal_is_netted_with_pending_entries(merchant_id: str) -> None:
    assert take_back(merchant_id, IN_REACH + 500) == 500
    assert ledger.balance(merchant_id) == ledger.Balance(WAITING * EACH - IN_REACH - 500, 0, 0)
    ledger.roll_up_due(now=clock.now(), batch=7)
    assert ledger.balance(merchant_id) == ledger.Balance(WAITING * EACH - IN_REACH - 500, 0, 0)
    filled = Journal.objects.filter(type=JournalType.DEBT_REPAID).aggregate(sum=Sum("amount"))["sum"]
    assert filled == 500
    check_books()


@pytest.mark.slow
def test_a_balance_is_read_by_the_index_beside_the_backlog_of_another(merchant_id: str) -> None:
    other = str(MerchantFactory().id)
    pay_in(other, 1)
    pay_in(merchant_id, 2_000)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE ledger_pendingentry")
        cursor.execute(
            f"EXPLAIN {postings.READ_BALANCES}", [postings.END_OF_TIME, accounts.of_merchant(other)]
        )
        plan = "\n".join(line for (line,) in cursor.fetchall())
    assert "Seq Scan on ledger_pendingentry" not in plan
    assert "pendingentry_in_order" in plan


def test_debt_is_repaid_before_a_withdrawal_with_pending_entries(merchant_id: str) -> None:
    assert take_back(merchant_id, IN_REACH + 500) == 500
    with pytest.raises(InsufficientFunds):
        reserve(merchant_id, 6_501)
    reserve(merchant_id, 2_000)
    assert ledger.balance(merchant_id) == ledger.Balance(4_500, 2_000, 0)
    check_books()


def test_money_leaves_suspense_with_many_pending_entries(merchant_id: str, noon: Any) -> None:
    amounts = {ids.new("rcp_", noon): EACH for _ in range(WAITING)}
    with transaction.atomic():
        bulk.hold_all(amounts, source=BANK, now=noon)
    ledger.send_back(subject_id=next(iter(amounts)), amount=EACH, to=BANK, now=noon)
    assert PendingEntry.objects.filter(account_id=accounts.SANDBOX_SUSPENSE).count() == WAITING - STEP
    with pytest.raises(ServiceUnavailable), transaction.atomic():
        ledger.send_back(subject_id="large", amount=IN_REACH + 1_000, to=BANK, now=noon)
    check_books()


def test_roll_up_continues_after_its_last_commit(merchant_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, int]] = []

    def waiting(after: tuple[str, int], limit: int) -> list[tuple[str, int]]:
        asked.append(after)
        return postings.next_pending(after, limit)

    monkeypatch.setattr(ledger, "next_pending", waiting)
    assert ledger.roll_up_due(now=clock.now(), batch=30) == 2 * WAITING
    assert asked == sorted(set(asked))
    assert not PendingEntry.objects.exists()
    check_books()


def test_roll_up_stops_after_its_time_limit(merchant_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "ROLL_UP_SECONDS", 0.0)
    assert ledger.roll_up_due(now=clock.now(), batch=30) == 0
    monkeypatch.setattr(ledger, "ROLL_UP_SECONDS", 60.0)
    assert ledger.roll_up_due(now=clock.now(), batch=30) == 2 * WAITING


@pytest.mark.django_db(transaction=True)
@pytest.mark.slow
def test_concurrent_roll_ups_withdrawals_and_credits_lose_no_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    merchant_ids = [str(MerchantFactory().id) for _ in range(3)]
    for each in merchant_ids:
        pay_in(each, WAITING)

    def sweep() -> None:
        ledger.roll_up_due(now=clock.now(), batch=7)

    def withdraw(merchant_id: str) -> None:
        for _ in range(10):
            reserve(merchant_id, 2 * EACH)

    withdrawals = [partial(withdraw, each) for each in merchant_ids for _ in range(2)]
    run_concurrently(*withdrawals, *[partial(pay_in, each, 20) for each in merchant_ids], sweep, sweep, sweep)
    sweep()
    for each in merchant_ids:
        assert ledger.balance(each) == ledger.Balance((WAITING + 20) * EACH - 40 * EACH, 40 * EACH, 0)
    assert not PendingEntry.objects.exists()
    check_books()
