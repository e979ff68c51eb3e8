"""Totals and pages are what a plain count and a plain OFFSET say, whatever is folded by then."""

from datetime import datetime
from random import Random
from typing import Any

import pytest
from django.db import DatabaseError, connection, transaction

from merchants.models import Merchant
from tests.conftest import Shop
from tests.factories import MerchantFactory, TransactionFactory
from tests.transactions import histories
from transactions import counting, listing, tasks
from transactions.counting import Wanted
from transactions.models import Status, Tally, Transaction, Type, Uncounted

NOT_ALLOWED = "42501"
ROWS = listing.NEAR + 300

pytestmark = pytest.mark.django_db


@pytest.fixture
def merchant() -> Merchant:
    made: Merchant = MerchantFactory()
    return made


def check(wanted: Wanted, chance: Random, pages: int = 1) -> None:
    """Compare total and pages with Django's own: the first, one at any offset, and those around the end."""
    plain = list(histories.matching(wanted))
    ends = [0, len(plain) - 1, len(plain), len(plain) + 1]
    offsets = {max(0, offset) for offset in [*ends, *(chance.randint(0, len(plain)) for _ in range(pages))]}
    for offset in offsets:
        limit = chance.choice([1, 20, 100])
        found = listing.page(wanted, limit=limit, offset=offset)
        assert found.total == len(plain), wanted
        assert found.transactions == plain[offset : offset + limit], (wanted, offset, limit)


def check_all(merchant: Merchant, chance: Random, stretches: int = 1) -> None:
    for stretch in histories.stretches(chance, stretches):
        for given in histories.FILTERS:
            check(Wanted(merchant.id, **given, **stretch), chance)


@pytest.mark.parametrize("seed", range(6))
def test_every_filter_says_what_a_plain_count_says(merchant: Merchant, seed: int) -> None:
    chance, rival = Random(seed), MerchantFactory()
    for _ in range(chance.randint(1, 4)):
        for each in (merchant, rival):
            histories.write(each, chance, chance.randint(1, 60))
            histories.move(each, chance, chance.randint(0, 20))
        if chance.random() < 0.7:
            counting.fold(batch=chance.choice([1, 7, 1_000]))
        histories.move(merchant, chance, 3)
    check_all(merchant, chance)
    tasks.count_due()
    assert not Uncounted.objects.exists()
    check_all(merchant, chance)


@pytest.mark.parametrize("is_folded", [False, True], ids=["unfolded", "folded"])
def test_far_pages_are_what_a_plain_offset_finds(merchant: Merchant, is_folded: bool) -> None:
    chance = Random(17)
    histories.write(merchant, chance, ROWS)
    histories.move(merchant, chance, 40)
    if is_folded:
        counting.fold()
    for stretch in histories.stretches(chance, 3):
        check(Wanted(merchant.id, **stretch), chance, pages=20)


@pytest.mark.parametrize("given", histories.FILTERS, ids=str)
def test_the_place_of_each_row_is_found(merchant: Merchant, given: dict[str, Any]) -> None:
    # By way of the place alone, which pages take beyond NEAR, for every row of a short history.
    chance = Random(23)
    histories.write(merchant, chance, 40)
    counting.fold()
    histories.write(merchant, chance, 20)
    histories.move(merchant, chance, 8)
    wanted = Wanted(merchant.id, **given)
    plain = list(histories.matching(wanted))
    with connection.cursor() as cursor:
        for offset in range(len(plain) + 1):
            cursor.execute(counting.place_sql(wanted), {**wanted.values, "offset": offset})
            places = cursor.fetchall()
            if offset == len(plain):
                assert not places
                continue
            [(before, rest)] = places
            assert plain[offset] == [row for row in plain if row.created_at < before][rest]
            assert (before - plain[offset].created_at).total_seconds() <= 60


def test_a_far_page_over_the_api(shop: Shop) -> None:
    histories.write(shop.merchant, Random(5), ROWS)
    counting.fold()
    for query in ("", "&status=succeeded&type=payment", "&end_date=2026-11-20", "&start_date=2025-12-31"):
        answers: list[Any] = []
        while not answers or answers[-1]["transactions"]:
            path = f"/Thai/v1/transactions?limit=100&offset={100 * len(answers)}{query}"
            answers.append(shop.get(path).json())
        listed = [row["transaction_id"] for answer in answers for row in answer["transactions"]]
        assert len(listed) == len(set(listed)) == answers[0]["total"] > 0
        assert {answer["total"] for answer in answers} == {len(listed)}


@pytest.mark.parametrize("offset", [0, listing.NEAR + 1])
def test_a_page_and_its_total_are_one_statement(
    merchant: Merchant, django_assert_num_queries: Any, offset: int
) -> None:
    with django_assert_num_queries(1):
        listing.page(Wanted(merchant.id, status=Status.PENDING), limit=20, offset=offset)


def test_a_history_of_nothing_is_empty(merchant: Merchant) -> None:
    for offset in (0, listing.NEAR + 1, 10**12):
        assert listing.page(Wanted(merchant.id), limit=20, offset=offset) == listing.Listed([], 0)


def count_by_tallies(merchant: Merchant) -> int:
    return listing.page(Wanted(merchant.id), limit=1, offset=0).total


def test_what_was_rolled_back_is_not_counted(merchant: Merchant) -> None:
    TransactionFactory(merchant=merchant)
    with pytest.raises(RuntimeError), transaction.atomic():
        TransactionFactory(merchant=merchant)
        assert count_by_tallies(merchant) == 2
        raise RuntimeError
    assert count_by_tallies(merchant) == 1


def test_rows_that_change_to_what_they_were_leave_no_note(merchant: Merchant) -> None:
    histories.write(merchant, Random(1), 30)
    counting.fold()
    refunds = Transaction.objects.filter(type=Type.REFUND)
    refunds.update(status=Status.FAILED)
    refunds.update(status=Status.FAILED)
    changes = Uncounted.objects.values_list("change", flat=True)
    assert sum(changes) == 0
    counting.fold()
    refunds.update(status=Status.FAILED)
    assert not Uncounted.objects.exists()
    check_all(merchant, Random(1))


def test_a_bulk_load_notes_minutes_and_not_rows(merchant: Merchant, noon: datetime) -> None:
    rows = [TransactionFactory.build(merchant=merchant, created_at=noon) for _ in range(500)]
    Transaction.objects.bulk_create(rows)
    assert list(Uncounted.objects.values_list("change", flat=True)) == [500]
    counting.fold()
    assert set(Tally.objects.values_list("span", "count")) == {
        (span, 500) for span in ("month", "day", "hour", "minute")
    }


ATTACKS = {
    "another tally": "UPDATE transactions_tally SET count = count + 1",
    "a tally less": "DELETE FROM transactions_tally",
    "a tally more": """INSERT INTO transactions_tally (merchant_id, span, begins_at, type, status, count)
        SELECT merchant_id, 'month', '2020-01-01T00:00Z', type, status, 1 FROM transactions_transaction""",
    "no tallies": "TRUNCATE transactions_tally",
    "a note more": """INSERT INTO transactions_uncounted (merchant_id, minute, type, status, change)
        SELECT merchant_id, created_at, type, status, 1 FROM transactions_transaction""",
    "another note": "UPDATE transactions_uncounted SET change = change + 1",
    "no notes": "TRUNCATE transactions_uncounted",
}


@pytest.mark.parametrize("name", ATTACKS)
def test_nobody_else_writes_the_tallies(merchant: Merchant, name: str) -> None:
    TransactionFactory(merchant=merchant)
    counting.fold()
    TransactionFactory(merchant=merchant)
    with pytest.raises(DatabaseError) as refused, transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(ATTACKS[name])
    assert getattr(refused.value.__cause__, "sqlstate", None) == NOT_ALLOWED
    assert count_by_tallies(merchant) == 2


def test_a_note_that_goes_is_counted_whoever_deletes_it(merchant: Merchant) -> None:
    histories.write(merchant, Random(3), 50)
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM transactions_uncounted WHERE id % 2 = 0")
    check_all(merchant, Random(3))
