"""`GET /balance/transactions`: what changed the balance, and the balance after each change."""

import re
from itertools import accumulate
from random import Random
from typing import Any

import pytest
from django.db import DatabaseError, connection, transaction
from django.test.utils import CaptureQueriesContext

from counts import counting
from ledger.balance_transactions import SIGNS, balances_after
from ledger.journal_types import BalanceTransactionType
from ledger.models import BalanceTransaction
from tests.conftest import SandboxBankClient, Shop
from tests.counts.builders import BalanceTransactionBuilder
from tests.factories import MerchantFactory
from tests.refunds.builders import PAYEE
from tests.withdrawals.builders import withdrawn

pytestmark = pytest.mark.django_db
PATH = "/Thai/v1/balance/transactions"
MANY_ROWS = """
    INSERT INTO ledger_balancetransaction (id, merchant_id, type, amount, source_id, created_at)
    SELECT 'bal_' || n, (%s::text[])[1 + n %% 10], 'payment', 100, 'pay_' || n,
        timestamptz '2026-11-01' + n * interval '10 s'
    FROM generate_series(1, 5000) AS n
"""
PARTS = ("amount", "reserved_amount", "unconfirmed_amount")


def listed(shop: Shop, query: str = "") -> list[dict[str, Any]]:
    response = shop.get(f"{PATH}?{query}")
    assert response.status_code == 200, response.content
    rows: list[dict[str, Any]] = response.json()["balance_transactions"]
    return rows


def paid(shop: Shop, bank: SandboxBankClient, amount: int = 150_000) -> str:
    code = shop.qr_code(amount=amount)
    bank.notify(code)
    return str(code["payment_id"])


@pytest.mark.slow
def test_payment_refund_and_withdrawal_change_the_balance(shop: Shop, bank: SandboxBankClient) -> None:
    payment_id = paid(shop, bank)
    refund = shop.post(
        "/v1/refunds", {"payment_id": payment_id, "amount": 50_000, "destination": PAYEE}
    ).json()
    withdrawal = withdrawn(shop, amount=20_000)
    shop.post(f"/v1/withdrawals/{withdrawal['withdrawal_id']}/cancel")
    rows = [(row["type"], row["amount"], row["balance_after"], row["reserved_after"]) for row in listed(shop)]
    assert rows == [
        ("withdrawal_released", 20_000, 100_000, 50_000),
        ("withdrawal_reserved", -20_000, 80_000, 70_000),
        ("refund_reserved", -50_000, 100_000, 50_000),
        ("payment", 150_000, 150_000, 0),
    ]
    assert [row["source"] for row in listed(shop)] == [
        withdrawal["withdrawal_id"],
        withdrawal["withdrawal_id"],
        refund["refund_id"],
        payment_id,
    ]
    balance = shop.get("/v1/balance").json()
    newest = listed(shop)[0]
    assert (balance["available"], balance["reserved"]) == (newest["balance_after"], newest["reserved_after"])


@pytest.mark.slow
def test_reversal_beyond_the_balance_shows_what_is_owed(shop: Shop, bank: SandboxBankClient) -> None:
    code = shop.qr_code(amount=10_000)
    notification = bank.notification(code)
    bank.post(notification)
    withdrawn(shop, amount=4_000)
    bank.post(notification | {"type": "reversal"})
    newest = listed(shop)[0]
    assert (newest["type"], newest["source"]) == ("reversal", code["payment_id"])
    assert (newest["amount"], newest["balance_after"], newest["reserved_after"]) == (-10_000, -4_000, 4_000)
    assert shop.get("/v1/balance").json()["owed"] == 4_000


@pytest.mark.slow
def test_filter_by_type_keeps_the_balance_of_all_types(shop: Shop, bank: SandboxBankClient) -> None:
    for amount in (10_000, 20_000):
        paid(shop, bank, amount)
        withdrawn(shop, amount=1_000)
    found = listed(shop, "type=payment")
    assert [(row["amount"], row["balance_after"]) for row in found] == [(20_000, 29_000), (10_000, 10_000)]


@pytest.mark.parametrize("query", ["type=interest", "limit=0", "start_date=today", "after=bal_unknown"])
def test_invalid_parameters_are_refused(shop: Shop, query: str) -> None:
    refused = shop.get(f"{PATH}?{query}")
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "invalid_parameters")
    assert refused.json()["error"]["param"] == query.partition("=")[0]


@pytest.mark.parametrize("is_rolled_up", [False, True], ids=["deltas", "counts"])
@pytest.mark.slow
def test_balance_after_equals_the_sum_of_all_earlier_rows(is_rolled_up: bool) -> None:
    builder, merchant, chance = BalanceTransactionBuilder(), MerchantFactory(), Random(3)
    for _ in range(3):
        builder.write(merchant, chance, 100)
        builder.write(MerchantFactory(), chance, 10)
        if is_rolled_up:
            counting.roll_up(batch=chance.choice([7, 1_000]))
    rows = list(BalanceTransaction.objects.filter(merchant=merchant).order_by("created_at", "id"))
    expected = list(
        accumulate((tuple(each * row.amount for each in signs(row.type)) for row in rows), add_up)
    )
    for page in (rows[:20], rows[-20:], chance.sample(rows, 50), rows[7:8], []):
        found = balances_after(merchant.id, page)
        assert {key: parts(each) for key, each in found.items()} == {
            row.id: expected[rows.index(row)] for row in page
        }


@pytest.mark.slow
def test_only_rows_of_the_minutes_of_a_page_are_read_for_its_balances() -> None:
    """PostgreSQL once expected a ninth of a merchant's rows in a minute, and read all of them."""
    merchant, *others = MerchantFactory.create_batch(10)
    with connection.cursor() as cursor:
        cursor.execute(MANY_ROWS, [[merchant.id, *(other.id for other in others)]])
        cursor.execute("ANALYZE ledger_balancetransaction")
        page = list(BalanceTransaction.objects.filter(merchant=merchant)[::25])
        with CaptureQueriesContext(connection) as queries:
            balances_after(merchant.id, page)
        cursor.execute(f"EXPLAIN {queries[-1]['sql']}")
        plan = "\n".join(line for (line,) in cursor.fetchall())
    conditions = re.findall("on ledger_balancetransaction .*\n *(.*)", plan)
    # The rows of open periods, and those of the minutes.
    assert ["created_at >= " in each for each in conditions] == [True, True], plan


def signs(type: str) -> tuple[int, int, int]:
    return parts(SIGNS[type])


def parts(change: Any) -> tuple[int, int, int]:
    return change.available, change.reserved, change.unconfirmed


def add_up(one: tuple[int, ...], other: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(map(sum, zip(one, other, strict=True)))


def test_every_type_has_its_signs() -> None:
    assert set(SIGNS) == set(BalanceTransactionType)


def test_balance_transaction_is_never_changed(shop: Shop, bank: SandboxBankClient) -> None:
    paid(shop, bank)
    rows = BalanceTransaction.objects.filter(merchant=shop.merchant)
    for act in (rows.delete, lambda: rows.update(amount=1)):
        with pytest.raises(DatabaseError, match="never changed"), transaction.atomic():
            act()
    assert rows.get().amount == 150_000
