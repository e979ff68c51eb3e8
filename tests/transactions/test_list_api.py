"""The list of spec 4.7: rows, filters, exact totals."""

from datetime import UTC, datetime

import pytest
from django.db import DatabaseError, connection, transaction

from core import clock
from tests.conftest import SandboxBankClient, Shop
from tests.factories import TransactionFactory
from transactions import services
from transactions.models import Transaction, TransactionStatus

PATH = "/Thai/v1/transactions"
KEYS = {
    "transaction_id",
    "payment_id",
    "type",
    "status",
    "amount",
    "amount_display",
    "currency",
    "created_at",
}


def ids_of(shop: Shop, query: str) -> set[str]:
    answer = shop.get(f"{PATH}?{query}")
    assert answer.status_code == 200, answer.content
    assert answer.json()["total"] == len(answer.json()["transactions"])
    return {row["transaction_id"] for row in answer.json()["transactions"]}


@pytest.mark.slow
def test_paid_and_declined_qr_codes_have_a_transaction_and_pending_have_none(
    shop: Shop, bank: SandboxBankClient
) -> None:
    paid, declined, _ = shop.qr_code(), shop.qr_code(), shop.qr_code()
    bank.notify(paid)
    bank.notify(declined, type="decline")
    rows = {row["payment_id"]: row for row in shop.get(PATH).json()["transactions"]}
    assert set(rows) == {paid["payment_id"], declined["payment_id"]}
    assert set(rows[paid["payment_id"]]) == KEYS
    assert [
        (rows[code["payment_id"]]["type"], rows[code["payment_id"]]["status"]) for code in (paid, declined)
    ] == [
        ("payment", "succeeded"),
        ("failed", "failed"),
    ]


def test_transaction_is_read_by_its_id(shop: Shop, other_shop: Shop, bank: SandboxBankClient) -> None:
    bank.notify(shop.qr_code())
    (row,) = shop.get(PATH).json()["transactions"]
    read = shop.get(f"{PATH}/{row['transaction_id']}")
    assert (read.status_code, read.json()) == (200, row)
    for unknown in (other_shop.get(f"{PATH}/{row['transaction_id']}"), shop.get(f"{PATH}/txn_%00")):
        assert (unknown.status_code, unknown.json()["error"]["code"]) == (404, "transaction_not_found")


def test_transactions_are_filtered_by_status_type_and_dates(shop: Shop) -> None:
    early = TransactionFactory(
        merchant=shop.merchant, created_at=datetime(2026, 11, 20, 23, 59, 59, 999000, UTC)
    )
    late = TransactionFactory(
        merchant=shop.merchant, created_at=datetime(2026, 11, 21, tzinfo=UTC), type="failed", status="failed"
    )
    assert ids_of(shop, "") == {early.id, late.id}
    assert ids_of(shop, "status=failed") == {late.id}
    assert ids_of(shop, "type=payment") == {early.id}
    assert ids_of(shop, "type=refund") == set()
    assert ids_of(shop, "start_date=2026-11-21") == {late.id}
    assert ids_of(shop, "end_date=2026-11-20") == {early.id}
    assert ids_of(shop, "start_date=2026-11-21T07:00:00%2B07:00") == {late.id}
    assert ids_of(shop, "start_date=2026-11-21T07:00:00+07:00") == {late.id}
    assert ids_of(shop, "end_date=2026-11-21T00:00:00Z") == {early.id, late.id}
    assert ids_of(shop, "end_date=2026-11-20T23:59:59.998Z") == set()


@pytest.mark.parametrize(
    "query",
    ["type=failed", "type=", "status=expired", "limit=101", "limit=0", "offset=-1", "start_date=2026-02-30",
     "start_date=2569-11-21", "end_date=tomorrow", "start_date=2026-11-22&end_date=2026-11-21"],
)  # fmt: skip
def test_invalid_transaction_filters_are_refused(shop: Shop, query: str) -> None:
    answer = shop.get(f"{PATH}?{query}")
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "invalid_parameters")


def test_transactions_of_another_merchant_are_not_listed(shop: Shop, other_shop: Shop) -> None:
    TransactionFactory(merchant=other_shop.merchant)
    assert shop.get(PATH).json()["total"] == 0


@pytest.mark.django_db
@pytest.mark.parametrize(
    "attack",
    [
        "UPDATE transactions_transaction SET amount = amount + 1",
        "UPDATE transactions_transaction SET payment_id = 'pay_000000000000000000000000000'",
        "UPDATE transactions_transaction SET status = 'lost'",
        "DELETE FROM transactions_transaction",
        # a second row for the same payment
        """INSERT INTO transactions_transaction
           (id, merchant_id, payment_id, type, status, amount, currency, created_at)
           SELECT 'txn_x', merchant_id, payment_id, type, status, amount, currency, created_at
           FROM transactions_transaction""",
    ],
)
def test_transactions_cannot_be_changed_or_deleted(attack: str) -> None:
    TransactionFactory()
    with pytest.raises(DatabaseError), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(attack)
    assert Transaction.objects.count() == 1


def test_refund_transaction_is_listed_as_pending_and_then_completed(
    shop: Shop, bank: SandboxBankClient
) -> None:
    code = shop.qr_code()
    bank.notify(code)
    payment_id, at = code["payment_id"], clock.now()
    fields = {"payment_id": payment_id, "merchant_id": shop.merchant.id, "currency": "THB", "now": at}
    services.record_refund(refund_id="ref_1", amount=100_000, **fields)
    services.record_refund(refund_id="ref_2", amount=50_000, **fields)
    services.complete_refunds("ref_2", status=TransactionStatus.FAILED)
    assert {(row["type"], row["status"], row["amount"]) for row in shop.get(PATH).json()["transactions"]} == {
        ("payment", "succeeded", 150_000),
        ("refund", "pending", -100_000),
        ("refund", "failed", -50_000),
    }
    services.complete_refunds("ref_1", status=TransactionStatus.SUCCEEDED)
    services.mark_refunded(payment_id=payment_id)
    assert dict(Transaction.objects.values_list("amount", "status")) == {
        150_000: "refunded",
        -100_000: "succeeded",
        -50_000: "failed",
    }
