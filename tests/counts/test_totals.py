"""Totals and pages equal a plain COUNT and a plain OFFSET, before and after each roll-up."""

from datetime import datetime
from random import Random
from typing import Any

import pytest
from django.db import DatabaseError, connection, transaction

from counts import counting, listing, tasks
from counts.listing import ListPage
from counts.lists import ListFilter
from counts.models import CountDelta, ListCount
from merchants.models import Merchant
from payments.models import PAYMENTS, Payment
from tests.conftest import Shop
from tests.console.lists.query_plans import unbounded
from tests.counts import builders
from tests.counts.builders import Given, ListBuilder, PaymentBuilder, TransactionBuilder
from tests.counts.closing import close_future
from tests.counts.conftest import some_lists
from tests.examples import examples
from tests.factories import MerchantFactory, PaymentFactory, TransactionFactory
from transactions.models import Transaction, TransactionStatus, TransactionType

NOT_ALLOWED = "42501"
ROWS = listing.MAX_PLAIN_OFFSET + 300
TRANSACTIONS = TransactionBuilder()
FILTERS = examples(150)
WAITING, NOT_WAITING = 100, 1900
# One of 20 waits. All others are past their expiry.
MANY_PAYMENTS = f"""
    INSERT INTO payments_payment
        (id, merchant_id, qr_code_id, status, failure_code, amount, currency, amount_refunded,
         amount_refunding, created_at, updated_at, expires_at)
    SELECT 'pay_' || n, %s, 'qr_' || n, status, failure_code, 100, 'THB', 0, 0, at, at,
        CASE status WHEN 'pending' THEN at + interval '10 years' ELSE at END
    FROM generate_series(1, {WAITING + NOT_WAITING}) AS n,
    LATERAL (SELECT timestamptz '2026-11-01' + n * interval '1 s') AS time (at),
    LATERAL (
        SELECT CASE WHEN n <= {WAITING} THEN 'pending' ELSE 'failed' END,
            CASE WHEN n > {WAITING} THEN 'payment_declined' END
    ) AS kind (status, failure_code)
"""

pytestmark = pytest.mark.django_db


def check(
    listed: ListBuilder, merchant: Merchant, given: Given, period: Given, chance: Random, pages: int = 1
) -> None:
    """Compare total and pages with Django's own: the first, one at any offset, and those around the end."""
    plain = list(listed.rows(merchant, given, **period))
    wanted = listed.wanted(merchant, given, **period)
    ends = [0, len(plain) - 1, len(plain), len(plain) + 1]
    offsets = {max(0, offset) for offset in [*ends, *(chance.randint(0, len(plain)) for _ in range(pages))]}
    for offset in offsets:
        limit = chance.choice([1, 20, 100])
        found = listing.page(wanted, limit=limit, offset=offset)
        assert found.total == len(plain), wanted
        assert found.rows == plain[offset : offset + limit], (wanted, offset, limit)


def check_all(listed: ListBuilder, merchant: Merchant, chance: Random) -> None:
    """Check the list without a filter and, of its filters, some for each period."""
    plain, *filters = listed.filters
    for period in builders.periods(chance, 1):
        for given in [plain, *chance.sample(filters, min(len(filters), FILTERS))]:
            check(listed, merchant, given, period, chance)


@pytest.mark.parametrize("seed", range(examples(15)))
@pytest.mark.slow
def test_totals_equal_a_plain_count_for_all_filters(
    listed: ListBuilder, merchant: Merchant, seed: int
) -> None:
    chance, rival = Random(seed), MerchantFactory()
    for _ in range(chance.randint(1, 4)):
        for each in (merchant, rival):
            listed.write(each, chance, chance.randint(1, 60))
            listed.move(each, chance, chance.randint(0, 20))
        if chance.random() < 0.7:
            counting.roll_up(batch=chance.choice([1, 7, 1_000]))
        listed.move(merchant, chance, 3)
    check_all(listed, merchant, chance)
    tasks.roll_up()
    assert not CountDelta.objects.exists()
    check_all(listed, merchant, chance)


@some_lists
@pytest.mark.parametrize("is_rolled_up", [False, True], ids=["deltas", "counts"])
@pytest.mark.slow
def test_pages_at_large_offsets_equal_a_plain_offset(
    listed: ListBuilder, merchant: Merchant, is_rolled_up: bool
) -> None:
    chance = Random(17)
    listed.write(merchant, chance, ROWS)
    listed.move(merchant, chance, 40)
    if is_rolled_up:
        counting.roll_up()
    for period in builders.periods(chance, 3):
        check(listed, merchant, {}, period, chance, pages=examples(60))


@some_lists
@pytest.mark.slow
def test_position_is_found_for_every_offset(listed: ListBuilder, merchant: Merchant) -> None:
    # By way of the position alone, which pages take beyond MAX_PLAIN_OFFSET, for every row of a short list.
    chance = Random(23)
    listed.write(merchant, chance, 40)
    counting.roll_up()
    listed.write(merchant, chance, 20)
    listed.move(merchant, chance, 8)
    for given in listed.filters:
        plain = list(listed.rows(merchant, given))
        for offset in range(len(plain) + 1):
            places = positions(listed, merchant, given, offset)
            if offset == len(plain):
                assert not places
                continue
            [(before, rest)] = places
            assert plain[offset] == [row for row in plain if row.created_at < before][rest]
            assert (before - plain[offset].created_at).total_seconds() <= 60


def positions(listed: ListBuilder, merchant: Merchant, given: Given, offset: int) -> list[Any]:
    wanted = listed.wanted(merchant, given)
    common, position = counting.common_sql(wanted), counting.position_sql(wanted)
    with connection.cursor() as cursor:
        cursor.execute(
            f"WITH {common} SELECT * FROM ({position}) AS place",
            {**wanted.values, "offset": offset},
        )
        return list(cursor.fetchall())


@some_lists
@pytest.mark.slow
def test_pages_of_the_api_list_every_row_once(listed: ListBuilder, shop: Shop) -> None:
    listed.write(shop.merchant, Random(5), ROWS)
    listed.move(shop.merchant, Random(5), 30)
    counting.roll_up()
    for query in ("", "&end_date=2026-11-20", "&start_date=2025-12-31"):
        found: list[str] = []
        while True:
            ids, page = listed.page(shop, f"limit=100&offset={len(found)}{query}")
            found += ids
            if not ids:
                break
        assert len(found) == len(set(found)) == page["total"] > 0


@pytest.mark.parametrize("offset", [0, listing.MAX_PLAIN_OFFSET + 1])
def test_page_and_total_are_read_by_one_statement(
    listed: ListBuilder, merchant: Merchant, django_assert_num_queries: Any, offset: int
) -> None:
    wanted = listed.wanted(merchant, listed.filters[-1])
    with django_assert_num_queries(1):
        listing.page(wanted, limit=20, offset=offset)


def test_empty_list_has_total_zero(listed: ListBuilder, merchant: Merchant) -> None:
    for offset in (0, listing.MAX_PLAIN_OFFSET + 1, 10**12):
        assert listing.page(listed.wanted(merchant, {}), limit=20, offset=offset) == ListPage([], 0)


def total_of(merchant: Merchant) -> int:
    return listing.page(TRANSACTIONS.wanted(merchant, {}), limit=1).total


def test_rolled_back_transactions_are_not_counted(merchant: Merchant) -> None:
    TransactionFactory(merchant=merchant)
    with pytest.raises(RuntimeError), transaction.atomic():
        TransactionFactory(merchant=merchant)
        assert total_of(merchant) == 2
        raise RuntimeError
    assert total_of(merchant) == 1


@pytest.mark.slow
def test_update_that_changes_nothing_writes_no_count_delta(merchant: Merchant) -> None:
    TRANSACTIONS.write(merchant, Random(1), 30)
    counting.roll_up()
    refunds = Transaction.objects.filter(type=TransactionType.REFUND)
    refunds.update(status=TransactionStatus.FAILED)
    refunds.update(status=TransactionStatus.FAILED)
    changes = CountDelta.objects.values_list("delta", flat=True)
    assert sum(changes) == 0
    counting.roll_up()
    refunds.update(status=TransactionStatus.FAILED)
    assert not CountDelta.objects.exists()
    check_all(TRANSACTIONS, merchant, Random(1))


@pytest.mark.slow
def test_bulk_update_writes_one_count_delta_per_minute_and_kind(merchant: Merchant, noon: datetime) -> None:
    rows = [TransactionFactory.build(merchant=merchant, created_at=noon) for _ in range(500)]
    Transaction.objects.bulk_create(rows)
    counting.roll_up()
    assert set(ListCount.objects.values_list("bucket", "count")) == {
        (bucket, 500) for bucket in ("month", "day", "hour", "minute")
    }
    Transaction.objects.update(status=TransactionStatus.REFUNDED)
    assert set(CountDelta.objects.values_list("kind", "delta")) == {
        ("payment/succeeded", -500),
        ("payment/refunded", 500),
    }


ATTACKS = {
    "a changed count": "UPDATE counts_listcount SET count = count + 1",
    "deleted counts": "DELETE FROM counts_listcount",
    "a count too many": """INSERT INTO counts_listcount (list, owner_id, kind, bucket, starts_at, count)
        SELECT 'transactions', merchant_id, 'payment/succeeded', 'month', '2020-01-01T00:00Z', 1
        FROM transactions_transaction""",
    "truncated counts": "TRUNCATE counts_listcount",
    "an inserted delta": """INSERT INTO counts_countdelta (list, owner_id, kind, period, delta)
        SELECT 'transactions', merchant_id, 'payment/succeeded', created_at, 1
        FROM transactions_transaction""",
    "a changed delta": "UPDATE counts_countdelta SET delta = delta + 1",
    "truncated deltas": "TRUNCATE counts_countdelta",
    "a changed period": "UPDATE counts_openperiod SET period = period - interval '1 hour'",
    "a deleted period": "DELETE FROM counts_openperiod",
    "a period too many": "INSERT INTO counts_openperiod (period, owner_id) VALUES (now(), 'nobody')",
    "truncated periods": "TRUNCATE counts_openperiod",
    "a deleted clock": "DELETE FROM counts_countclock",
    "a truncated clock": "TRUNCATE counts_countclock",
}


@pytest.mark.parametrize("name", ATTACKS)
def test_only_triggers_write_list_counts(merchant: Merchant, name: str) -> None:
    TransactionFactory(merchant=merchant)
    counting.roll_up()
    TransactionFactory(merchant=merchant)
    with pytest.raises(DatabaseError) as refused, transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(ATTACKS[name])
    assert getattr(refused.value.__cause__, "sqlstate", None) == NOT_ALLOWED
    assert total_of(merchant) == 2


@pytest.mark.slow
def test_deleted_count_delta_is_added_to_the_counts(merchant: Merchant) -> None:
    TRANSACTIONS.write(merchant, Random(3), 50)
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM counts_countdelta WHERE id % 2 = 0")
    check_all(TRANSACTIONS, merchant, Random(3))


@pytest.mark.slow
def test_roll_up_ends_at_its_deadline_and_continues_in_the_next_run(
    merchant: Merchant, monkeypatch: pytest.MonkeyPatch
) -> None:
    close_future()
    TRANSACTIONS.write(merchant, Random(4), 20)
    monkeypatch.setattr(counting, "ROLL_UP_SECONDS", 0.0)
    assert counting.roll_up(batch=3) == 0
    monkeypatch.undo()
    assert counting.roll_up(batch=3) == 20
    check_all(TRANSACTIONS, merchant, Random(4))


def test_roll_up_reads_deltas_by_an_index(merchant: Merchant) -> None:
    assert unbounded(counting.ROLL_UP, params=[0, 10]) == []


def test_planner_expects_waiting_payments_although_most_others_are_past_their_expiry(
    merchant: Merchant,
) -> None:
    """It once expected a twentieth of them, and so it sorted all instead of reading a page in order.

    The sample of ANALYZE contains all rows of so small a table, so its estimate is the same in each run.
    """
    with connection.cursor() as cursor:
        cursor.execute(MANY_PAYMENTS, [merchant.id])
        cursor.execute("ANALYZE payments_payment")
        waiting = PAYMENTS.matching(merchant.id, "pending", now=builders.NOW)
        (source,) = (each for each in waiting.sources if each != "due WHERE true")
        cursor.execute(f"EXPLAIN (FORMAT JSON) SELECT FROM {source}", waiting.values)
        expected = cursor.fetchone()[0][0]["Plan"]["Plan Rows"]
    assert expected >= WAITING / 4


def test_counts_that_reach_zero_are_deleted(merchant: Merchant) -> None:
    """Each payment is pending first, so the table would grow by four rows for each."""
    close_future()
    payment = PaymentFactory(merchant=merchant)
    counting.roll_up()
    Payment.objects.filter(pk=payment.pk).update(status="failed", failure_code="payment_declined")
    counting.roll_up()
    assert set(ListCount.objects.values_list("kind", "count")) == {("failed", 1)}


@pytest.mark.slow
def test_deleted_payment_is_no_longer_counted(merchant: Merchant) -> None:
    never_tried, _ = (PaymentFactory(merchant=merchant, qr_code_id=None, expires_at=None) for _ in range(2))
    never_tried.delete()
    check_all(PaymentBuilder(), merchant, Random(1))


def test_unknown_kind_is_refused(merchant: Merchant) -> None:
    with pytest.raises(ValueError, match="unknown"):
        ListFilter(TRANSACTIONS.counted, merchant.id, ("x' OR true --",))
