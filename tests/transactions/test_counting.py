"""Totals and pages equal a plain COUNT and a plain OFFSET, before and after each roll-up."""

from datetime import datetime
from random import Random
from typing import Any

import pytest
from django.db import DatabaseError, connection, transaction

from merchants.models import Merchant
from tests.conftest import Shop
from tests.factories import MerchantFactory, TransactionFactory
from tests.transactions import builders
from transactions import counting, listing, tasks
from transactions.counting import TransactionFilter
from transactions.models import CountDelta, Transaction, TransactionCount, TransactionStatus, TransactionType

NOT_ALLOWED = "42501"
ROWS = listing.MAX_PLAIN_OFFSET + 300

pytestmark = pytest.mark.django_db


@pytest.fixture
def merchant() -> Merchant:
    made: Merchant = MerchantFactory()
    return made


def check(wanted: TransactionFilter, chance: Random, pages: int = 1) -> None:
    """Compare total and pages with Django's own: the first, one at any offset, and those around the end."""
    plain = list(builders.matching(wanted))
    ends = [0, len(plain) - 1, len(plain), len(plain) + 1]
    offsets = {max(0, offset) for offset in [*ends, *(chance.randint(0, len(plain)) for _ in range(pages))]}
    for offset in offsets:
        limit = chance.choice([1, 20, 100])
        found = listing.page(wanted, limit=limit, offset=offset)
        assert found.total == len(plain), wanted
        assert found.transactions == plain[offset : offset + limit], (wanted, offset, limit)


def check_all(merchant: Merchant, chance: Random, stretches: int = 1) -> None:
    for stretch in builders.stretches(chance, stretches):
        for given in builders.FILTERS:
            check(TransactionFilter(merchant.id, **given, **stretch), chance)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.slow
def test_totals_of_all_filters_equal_a_plain_count(merchant: Merchant, seed: int) -> None:
    chance, rival = Random(seed), MerchantFactory()
    for _ in range(chance.randint(1, 4)):
        for each in (merchant, rival):
            builders.write(each, chance, chance.randint(1, 60))
            builders.move(each, chance, chance.randint(0, 20))
        if chance.random() < 0.7:
            counting.roll_up(batch=chance.choice([1, 7, 1_000]))
        builders.move(merchant, chance, 3)
    check_all(merchant, chance)
    tasks.roll_up_counts()
    assert not CountDelta.objects.exists()
    check_all(merchant, chance)


@pytest.mark.parametrize("is_rolled_up", [False, True], ids=["deltas", "counts"])
@pytest.mark.slow
def test_pages_at_large_offsets_equal_a_plain_offset(merchant: Merchant, is_rolled_up: bool) -> None:
    chance = Random(17)
    builders.write(merchant, chance, ROWS)
    builders.move(merchant, chance, 40)
    if is_rolled_up:
        counting.roll_up()
    for stretch in builders.stretches(chance, 3):
        check(TransactionFilter(merchant.id, **stretch), chance, pages=20)


@pytest.mark.parametrize("given", builders.FILTERS, ids=str)
def test_position_of_each_row_is_found(merchant: Merchant, given: dict[str, Any]) -> None:
    # By way of the place alone, which pages take beyond NEAR, for every row of a short history.
    chance = Random(23)
    builders.write(merchant, chance, 40)
    counting.roll_up()
    builders.write(merchant, chance, 20)
    builders.move(merchant, chance, 8)
    wanted = TransactionFilter(merchant.id, **given)
    plain = list(builders.matching(wanted))
    with connection.cursor() as cursor:
        for offset in range(len(plain) + 1):
            cursor.execute(counting.position_sql(wanted), {**wanted.values, "offset": offset})
            places = cursor.fetchall()
            if offset == len(plain):
                assert not places
                continue
            [(before, rest)] = places
            assert plain[offset] == [row for row in plain if row.created_at < before][rest]
            assert (before - plain[offset].created_at).total_seconds() <= 60


@pytest.mark.slow
def test_page_at_a_large_offset_over_the_api(shop: Shop) -> None:
    builders.write(shop.merchant, Random(5), ROWS)
    counting.roll_up()
    for query in ("", "&status=succeeded&type=payment", "&end_date=2026-11-20", "&start_date=2025-12-31"):
        answers: list[Any] = []
        while not answers or answers[-1]["transactions"]:
            path = f"/Thai/v1/transactions?limit=100&offset={100 * len(answers)}{query}"
            answers.append(shop.get(path).json())
        listed = [row["transaction_id"] for answer in answers for row in answer["transactions"]]
        assert len(listed) == len(set(listed)) == answers[0]["total"] > 0
        assert {answer["total"] for answer in answers} == {len(listed)}


@pytest.mark.parametrize("offset", [0, listing.MAX_PLAIN_OFFSET + 1])
def test_a_page_and_its_total_are_one_statement(
    merchant: Merchant, django_assert_num_queries: Any, offset: int
) -> None:
    with django_assert_num_queries(1):
        listing.page(
            TransactionFilter(merchant.id, status=TransactionStatus.PENDING), limit=20, offset=offset
        )


def test_empty_transaction_list(merchant: Merchant) -> None:
    for offset in (0, listing.MAX_PLAIN_OFFSET + 1, 10**12):
        assert listing.page(
            TransactionFilter(merchant.id), limit=20, offset=offset
        ) == listing.TransactionPage([], 0)


def total_of(merchant: Merchant) -> int:
    return listing.page(TransactionFilter(merchant.id), limit=1, offset=0).total


def test_rolled_back_transactions_are_not_counted(merchant: Merchant) -> None:
    TransactionFactory(merchant=merchant)
    with pytest.raises(RuntimeError), transaction.atomic():
        TransactionFactory(merchant=merchant)
        assert total_of(merchant) == 2
        raise RuntimeError
    assert total_of(merchant) == 1


@pytest.mark.slow
def test_update_that_changes_nothing_writes_no_count_delta(merchant: Merchant) -> None:
    builders.write(merchant, Random(1), 30)
    counting.roll_up()
    refunds = Transaction.objects.filter(type=TransactionType.REFUND)
    refunds.update(status=TransactionStatus.FAILED)
    refunds.update(status=TransactionStatus.FAILED)
    changes = CountDelta.objects.values_list("delta", flat=True)
    assert sum(changes) == 0
    counting.roll_up()
    refunds.update(status=TransactionStatus.FAILED)
    assert not CountDelta.objects.exists()
    check_all(merchant, Random(1))


def test_bulk_insert_writes_one_count_delta_per_minute(merchant: Merchant, noon: datetime) -> None:
    rows = [TransactionFactory.build(merchant=merchant, created_at=noon) for _ in range(500)]
    Transaction.objects.bulk_create(rows)
    assert list(CountDelta.objects.values_list("delta", flat=True)) == [500]
    counting.roll_up()
    assert set(TransactionCount.objects.values_list("bucket", "count")) == {
        (bucket, 500) for bucket in ("month", "day", "hour", "minute")
    }


ATTACKS = {
    "a changed count": "UPDATE transactions_transactioncount SET count = count + 1",
    "deleted counts": "DELETE FROM transactions_transactioncount",
    "a count too many": """INSERT INTO transactions_transactioncount
        (merchant_id, bucket, starts_at, type, status, count)
        SELECT merchant_id, 'month', '2020-01-01T00:00Z', type, status, 1 FROM transactions_transaction""",
    "truncated counts": "TRUNCATE transactions_transactioncount",
    "an inserted delta": """INSERT INTO transactions_countdelta (merchant_id, minute, type, status, delta)
        SELECT merchant_id, created_at, type, status, 1 FROM transactions_transaction""",
    "a changed delta": "UPDATE transactions_countdelta SET delta = delta + 1",
    "truncated deltas": "TRUNCATE transactions_countdelta",
}


@pytest.mark.parametrize("name", ATTACKS)
def test_only_triggers_write_transaction_counts(merchant: Merchant, name: str) -> None:
    TransactionFactory(merchant=merchant)
    counting.roll_up()
    TransactionFactory(merchant=merchant)
    with pytest.raises(DatabaseError) as refused, transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(ATTACKS[name])
    assert getattr(refused.value.__cause__, "sqlstate", None) == NOT_ALLOWED
    assert total_of(merchant) == 2


@pytest.mark.slow
def test_deleted_count_delta_is_added_to_the_counts(merchant: Merchant) -> None:
    builders.write(merchant, Random(3), 50)
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM transactions_countdelta WHERE id % 2 = 0")
    check_all(merchant, Random(3))
