"""Totals and pages while other threads write and roll up, each with its own connection."""

from functools import partial
from random import Random

import pytest
from django.db import connection, transaction

from merchants.models import Merchant
from tests.concurrency import run_concurrently
from tests.factories import MerchantFactory
from tests.transactions import builders
from tests.transactions.builders import times
from transactions import counting, listing
from transactions.counting import TransactionFilter
from transactions.models import CountDelta, Transaction, TransactionStatus, TransactionType

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def merchant() -> Merchant:
    made: Merchant = MerchantFactory()
    return made


@transaction.atomic
def write(merchant: Merchant, chance: Random) -> None:
    builders.write(merchant, chance, 3)


def move(merchant: Merchant, chance: Random) -> None:
    """Change a status. If several threads want the same row, only one changes it."""
    pending = Transaction.objects.filter(merchant=merchant, status=TransactionStatus.PENDING).values_list(
        "pk", flat=True
    )
    with transaction.atomic():
        Transaction.objects.filter(
            pk__in=list(pending[: chance.randint(1, 5)]), status=TransactionStatus.PENDING
        ).update(status=chance.choice([TransactionStatus.SUCCEEDED, TransactionStatus.FAILED]))


@transaction.atomic
def check(wanted: TransactionFilter, offset: int) -> None:
    """In one snapshot all must agree, however much is committed meanwhile."""
    with connection.cursor() as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    found = listing.page(wanted, limit=20, offset=offset)
    plain = list(builders.matching(wanted))
    assert found.total == len(plain)
    assert found.transactions == plain[offset : offset + 20]


def read(merchant: Merchant, chance: Random) -> None:
    given = chance.choice(builders.FILTERS)
    stretch = chance.choice(builders.stretches(chance, 1))
    offset = chance.choice([0, 5, listing.MAX_PLAIN_OFFSET + chance.randint(1, 200)])
    check(TransactionFilter(merchant.id, **given, **stretch), offset)


def test_transaction_page_and_total_are_one_snapshot(merchant: Merchant) -> None:
    builders.write(merchant, Random(0), listing.MAX_PLAIN_OFFSET + 200)
    run_concurrently(
        *[times(40, partial(write, merchant, Random(seed))) for seed in range(3)],
        *[times(40, partial(move, merchant, Random(seed))) for seed in range(3)],
        *[times(25, partial(counting.roll_up, batch=50)) for _ in range(2)],
        *[times(40, partial(read, merchant, Random(seed))) for seed in range(4)],
    )
    counting.roll_up()
    assert not CountDelta.objects.exists()
    for given in builders.FILTERS:
        check(TransactionFilter(merchant.id, **given), 0)


def test_a_page_and_its_total_agree_without_a_transaction_around_them(merchant: Merchant) -> None:
    # All rows move to the same status, so one page of 100 shows every row that the total counts.
    def record_and_move() -> None:
        write(merchant, Random(1))
        move(merchant, Random(1))

    def read_all() -> None:
        for status in (TransactionStatus.PENDING, TransactionStatus.SUCCEEDED, TransactionStatus.FAILED):
            found = listing.page(
                TransactionFilter(merchant.id, type=TransactionType.REFUND, status=status),
                limit=100,
                offset=0,
            )
            assert found.total == len(found.transactions)

    run_concurrently(
        *[times(15, record_and_move)] * 3, *[times(60, read_all)] * 3, times(30, counting.roll_up)
    )


def test_concurrent_roll_ups_count_each_delta_once(merchant: Merchant) -> None:
    others: list[Merchant] = [merchant, *(MerchantFactory() for _ in range(4))]
    for seed in range(5):
        for each in others:
            builders.write(each, Random(seed), 20)
            builders.move(each, Random(seed), 5)
    waiting = CountDelta.objects.count()
    folded = run_concurrently(*[partial(counting.roll_up, batch=5) for _ in range(8)])
    assert sum(folded) == waiting
    assert not CountDelta.objects.exists()
    for each in others:
        for given in builders.FILTERS:
            check(TransactionFilter(each.id, **given), 0)


def test_writers_wait_neither_for_a_roll_up_nor_for_each_other(merchant: Merchant) -> None:
    builders.write(merchant, Random(1), 20)
    with transaction.atomic():
        builders.write(merchant, Random(2), 20)
        counting.roll_up()

        def write_meanwhile() -> None:
            with connection.cursor() as cursor:
                cursor.execute("SET lock_timeout = '10s'")
            builders.write(merchant, Random(3), 20)
            assert listing.page(TransactionFilter(merchant.id), limit=1, offset=0).total == 40

        run_concurrently(write_meanwhile)
    check(TransactionFilter(merchant.id), 0)
    assert listing.page(TransactionFilter(merchant.id), limit=1, offset=0).total == 60
