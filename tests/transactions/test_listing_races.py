"""Totals and pages while others write and fold: real threads, each with a connection of its own."""

from functools import partial
from random import Random

import pytest
from django.db import connection, transaction

from merchants.models import Merchant
from tests.factories import MerchantFactory
from tests.threads import at_once
from tests.transactions import histories
from tests.transactions.histories import times
from transactions import counting, listing
from transactions.counting import Wanted
from transactions.models import Status, Transaction, Type, Uncounted

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def merchant() -> Merchant:
    made: Merchant = MerchantFactory()
    return made


@transaction.atomic
def write(merchant: Merchant, chance: Random) -> None:
    histories.write(merchant, chance, 3)


def move(merchant: Merchant, chance: Random) -> None:
    """One change of a status; of the row that others want too, one of them gets it."""
    pending = Transaction.objects.filter(merchant=merchant, status=Status.PENDING).values_list(
        "pk", flat=True
    )
    with transaction.atomic():
        Transaction.objects.filter(
            pk__in=list(pending[: chance.randint(1, 5)]), status=Status.PENDING
        ).update(status=chance.choice([Status.SUCCEEDED, Status.FAILED]))


@transaction.atomic
def check(wanted: Wanted, offset: int) -> None:
    """In one snapshot all must agree, however much is committed meanwhile."""
    with connection.cursor() as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    found = listing.page(wanted, limit=20, offset=offset)
    plain = list(histories.matching(wanted))
    assert found.total == len(plain)
    assert found.transactions == plain[offset : offset + 20]


def read(merchant: Merchant, chance: Random) -> None:
    given = chance.choice(histories.FILTERS)
    stretch = chance.choice(histories.stretches(chance, 1))
    offset = chance.choice([0, 5, listing.NEAR + chance.randint(1, 200)])
    check(Wanted(merchant.id, **given, **stretch), offset)


def test_a_page_and_its_total_are_of_one_moment(merchant: Merchant) -> None:
    histories.write(merchant, Random(0), listing.NEAR + 200)
    at_once(
        *[times(40, partial(write, merchant, Random(seed))) for seed in range(3)],
        *[times(40, partial(move, merchant, Random(seed))) for seed in range(3)],
        *[times(25, partial(counting.fold, batch=50)) for _ in range(2)],
        *[times(40, partial(read, merchant, Random(seed))) for seed in range(4)],
    )
    counting.fold()
    assert not Uncounted.objects.exists()
    for given in histories.FILTERS:
        check(Wanted(merchant.id, **given), 0)


def test_a_page_and_its_total_agree_without_a_transaction_around_them(merchant: Merchant) -> None:
    # All of these move to the same status, so the page of 100 holds all that its total counts.
    def record_and_move() -> None:
        write(merchant, Random(1))
        move(merchant, Random(1))

    def read_all() -> None:
        for status in (Status.PENDING, Status.SUCCEEDED, Status.FAILED):
            found = listing.page(Wanted(merchant.id, type=Type.REFUND, status=status), limit=100, offset=0)
            assert found.total == len(found.transactions)

    at_once(*[times(15, record_and_move)] * 3, *[times(60, read_all)] * 3, times(30, counting.fold))


def test_folds_at_once_count_each_change_once(merchant: Merchant) -> None:
    others: list[Merchant] = [merchant, *(MerchantFactory() for _ in range(4))]
    for seed in range(5):
        for each in others:
            histories.write(each, Random(seed), 20)
            histories.move(each, Random(seed), 5)
    waiting = Uncounted.objects.count()
    folded = at_once(*[partial(counting.fold, batch=5) for _ in range(8)])
    assert sum(folded) == waiting
    assert not Uncounted.objects.exists()
    for each in others:
        for given in histories.FILTERS:
            check(Wanted(each.id, **given), 0)


def test_writers_do_not_wait_for_a_fold_nor_for_each_other(merchant: Merchant) -> None:
    histories.write(merchant, Random(1), 20)
    with transaction.atomic():
        histories.write(merchant, Random(2), 20)
        counting.fold()

        def write_meanwhile() -> None:
            with connection.cursor() as cursor:
                cursor.execute("SET lock_timeout = '10s'")
            histories.write(merchant, Random(3), 20)
            assert listing.page(Wanted(merchant.id), limit=1, offset=0).total == 40

        at_once(write_meanwhile)
    check(Wanted(merchant.id), 0)
    assert listing.page(Wanted(merchant.id), limit=1, offset=0).total == 60
