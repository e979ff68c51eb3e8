"""Totals and pages while other threads write and roll up, each with its own connection."""

from datetime import timedelta
from functools import partial
from random import Random

import pytest
from django.db import connection, transaction

from counts import counting, listing
from counts.models import CountDelta
from merchants.models import Merchant
from tests.concurrency import run_concurrently
from tests.counts import builders
from tests.counts.builders import Given, ListBuilder, TransactionBuilder, times
from tests.counts.closing import close_all
from tests.counts.conftest import some_lists
from tests.examples import examples
from tests.factories import MerchantFactory
from transactions.models import TransactionStatus, TransactionType

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]
TRANSACTIONS = TransactionBuilder()
ROUNDS = examples(100)


@transaction.atomic
def write(listed: ListBuilder, merchant: Merchant, chance: Random) -> None:
    listed.write(merchant, chance, 3)


@transaction.atomic
def check(listed: ListBuilder, merchant: Merchant, given: Given, period: Given, offset: int) -> None:
    """In one snapshot all must agree, however much is committed meanwhile."""
    with connection.cursor() as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    found = listing.page(listed.wanted(merchant, given, **period), limit=20, offset=offset)
    plain = list(listed.rows(merchant, given, **period))
    assert found.total == len(plain)
    assert found.rows == plain[offset : offset + 20]


def read(listed: ListBuilder, merchant: Merchant, chance: Random) -> None:
    given = chance.choice(listed.filters)
    period = chance.choice(builders.periods(chance, 1))
    offset = chance.choice([0, 5, listing.MAX_PLAIN_OFFSET + chance.randint(1, 200)])
    check(listed, merchant, given, period, offset)


@some_lists
def test_page_and_total_are_one_snapshot(listed: ListBuilder, merchant: Merchant) -> None:
    listed.write(merchant, Random(0), listing.MAX_PLAIN_OFFSET + 200)
    run_concurrently(
        *[times(ROUNDS, partial(write, listed, merchant, Random(seed))) for seed in range(3)],
        *[times(ROUNDS, partial(listed.race, merchant, Random(seed))) for seed in range(3)],
        *[times(ROUNDS, partial(counting.roll_up, batch=50, open_for=timedelta())) for _ in range(2)],
        *[times(ROUNDS, partial(read, listed, merchant, Random(seed))) for seed in range(4)],
    )
    close_all()
    for given in listed.filters:
        check(listed, merchant, given, {}, 0)


def test_transaction_page_and_total_agree_without_a_database_transaction(merchant: Merchant) -> None:
    # All rows move to the same status, so one page of 100 shows every row that the total counts.
    def record_and_move() -> None:
        write(TRANSACTIONS, merchant, Random(1))
        TRANSACTIONS.race(merchant, Random(1))

    def read_all() -> None:
        for status in (TransactionStatus.PENDING, TransactionStatus.SUCCEEDED, TransactionStatus.FAILED):
            given = {"type": TransactionType.REFUND, "status": status}
            found = listing.page(TRANSACTIONS.wanted(merchant, given), limit=100)
            assert found.total == len(found.rows)

    run_concurrently(
        *[times(15, record_and_move)] * 3, *[times(60, read_all)] * 3, times(30, counting.roll_up)
    )


@some_lists
def test_concurrent_roll_ups_count_each_delta_once(listed: ListBuilder, merchant: Merchant) -> None:
    others: list[Merchant] = [merchant, *(MerchantFactory() for _ in range(4))]
    for seed in range(5):
        for each in others:
            listed.write(each, Random(seed), 20)
            listed.move(each, Random(seed), 5)
    waiting = CountDelta.objects.count()
    a_day = timedelta(days=1)  # no period closes meanwhile
    rolled_up = run_concurrently(*[partial(counting.roll_up, batch=5, open_for=a_day) for _ in range(8)])
    assert sum(rolled_up) == waiting
    assert not CountDelta.objects.exists()
    for each in others:
        for given in listed.filters:
            check(listed, each, given, {}, 0)


def test_writers_do_not_wait_for_roll_ups_or_other_writers(listed: ListBuilder, merchant: Merchant) -> None:
    def total() -> int:
        return listing.page(listed.wanted(merchant, {}), limit=1).total

    listed.write(merchant, Random(1), 20)
    with transaction.atomic():
        listed.write(merchant, Random(2), 20)
        counting.roll_up()

        def write_meanwhile() -> None:
            with connection.cursor() as cursor:
                cursor.execute("SET lock_timeout = '10s'")
            listed.write(merchant, Random(3), 20)
            assert total() == 40

        run_concurrently(write_meanwhile)
    check(listed, merchant, {}, {}, 0)
    assert total() == 60
