"""When a period closes, each of its rows is counted once, whoever writes meanwhile and however long."""

import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.db import ProgrammingError, connection, connections, transaction

from bench.stack import wait_until
from core import clock
from core.database import rows
from counts import counting, listing
from counts.lists import CountedList
from counts.models import CountClock, CountDelta, ListCount, OpenPeriod
from merchants.models import Merchant
from operations.audit.rules import COUNTED_LISTS
from tests.audit import differences
from tests.concurrency import lock_waiters, run_concurrently
from tests.counts.builders import TransactionBuilder
from tests.counts.closing import close_all, close_announced, step
from tests.factories import MerchantFactory, TransactionFactory
from transactions.models import Transaction, TransactionStatus

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def merchant() -> Merchant:
    made: Merchant = MerchantFactory()
    return made


def total(merchant: Merchant, status: str = "succeeded") -> int:
    """The total of the list, which must be that of the rows."""
    wanted = TransactionBuilder().wanted(merchant, {"type": "payment", "status": status})
    found = listing.page(wanted, limit=1).total
    assert found == Transaction.objects.filter(merchant=merchant, status=status).count()
    return found


def counted() -> int:
    """How many rows the counts have."""
    return sum(
        ListCount.objects.filter(bucket="month", kind="payment/succeeded").values_list("count", flat=True)
    )


def differences_of_counts() -> list[str]:
    return [each for each in differences() if each.startswith(("list counts", "rows that are not counted"))]


def move(merchant: Merchant) -> None:
    Transaction.objects.filter(merchant=merchant).update(status=TransactionStatus.REFUNDED)


@contextmanager
def open_transaction(act: Callable[[], object]) -> Iterator[None]:
    """`act` in a transaction that commits at the end; what happens within is on other connections."""
    with transaction.atomic():
        act()
        yield


def step_once() -> None:
    """Announce, mark or close."""
    rows.run(counting.STEP, [-timedelta(minutes=1)])


def number_of_a_transaction() -> int:
    return int(rows.run("SELECT pg_current_xact_id()::text", []).fetchone()[0])


def elsewhere(*acts: Callable[[], object]) -> None:
    """One after the other, on connections of their own."""
    for act in acts:
        run_concurrently(act)


def test_rows_are_read_one_by_one_until_their_period_closes(merchant: Merchant) -> None:
    for _ in range(3):
        TransactionFactory(merchant=merchant)
    assert (total(merchant), counted(), CountDelta.objects.count()) == (3, 0, 0)
    move(merchant)
    assert (total(merchant, "refunded"), CountDelta.objects.count()) == (3, 0)
    close_all()
    assert total(merchant, "refunded") == 3
    # Its merchant, and all test merchants together.
    days = ListCount.objects.filter(bucket="day")
    assert list(days.values_list("kind", "count")) == [("payment/refunded", 3)] * 2
    assert not differences_of_counts()


def test_row_of_a_closed_period_is_counted_by_a_delta(merchant: Merchant) -> None:
    close_all()
    TransactionFactory(merchant=merchant)
    assert (total(merchant), CountDelta.objects.count(), OpenPeriod.objects.count()) == (1, 1, 0)
    move(merchant)
    assert (total(merchant), total(merchant, "refunded")) == (0, 1)
    close_all()
    assert total(merchant, "refunded") == 1


def test_writer_that_missed_the_announcement_delays_the_closing(merchant: Merchant) -> None:
    with open_transaction(lambda: TransactionFactory(merchant=merchant)):
        elsewhere(step, step, step)
        clock = CountClock.objects.get()
        assert clock.closed < clock.announced
    assert total(merchant) == 1
    close_all()
    assert total(merchant) == 1
    assert counted() == 2  # of the merchant, and of all


def test_writer_that_saw_the_announcement_delays_nobody(merchant: Merchant) -> None:
    TransactionFactory(merchant=merchant)
    step()
    with open_transaction(lambda: TransactionFactory(merchant=merchant)):
        elsewhere(close_announced, partial(total, merchant))
        assert counted() == 2
    assert total(merchant) == 2
    close_all()
    assert (total(merchant), counted()) == (2, 4)


def test_first_row_of_an_owner_after_the_announcement_is_counted_once(merchant: Merchant) -> None:
    step()
    TransactionFactory(merchant=merchant)
    assert (total(merchant), OpenPeriod.objects.count()) == (1, 0)
    move(merchant)
    assert not differences_of_counts()
    close_all()
    assert (total(merchant), total(merchant, "refunded")) == (0, 1)
    assert not differences_of_counts()


@pytest.mark.parametrize("is_open", [False, True], ids=["committed", "open"])
def test_change_between_announcement_and_closing_is_counted_once(merchant: Merchant, is_open: bool) -> None:
    TransactionFactory(merchant=merchant)
    step()
    with open_transaction(lambda: move(merchant)):
        if is_open:
            elsewhere(close_announced)
    close_all()
    assert (total(merchant), total(merchant, "refunded")) == (0, 1)
    assert not differences_of_counts()


def test_steps_of_one_transaction_close_nothing(merchant: Merchant) -> None:
    """Another writer may not have seen its announcement, and has a higher number."""
    TransactionFactory(merchant=merchant)
    with transaction.atomic():
        for _ in range(3):
            step()
        assert OpenPeriod.objects.exists()
        elsewhere(lambda: TransactionFactory(merchant=merchant))
    close_all()
    assert total(merchant) == 2


def test_transaction_with_a_number_from_before_the_announcement_marks_nothing(merchant: Merchant) -> None:
    """A writer that missed the announcement could have a higher number."""
    TransactionFactory(merchant=merchant)
    with open_transaction(MerchantFactory):
        elsewhere(step_once)
        step_once()
    assert CountClock.objects.get().marked_by is None
    close_all()
    assert total(merchant) == 1


def test_step_that_waited_for_the_announcement_marks_with_a_later_number(merchant: Merchant) -> None:
    TransactionFactory(merchant=merchant)
    with ThreadPoolExecutor(1) as other:
        with transaction.atomic():
            step_once()
            waiting = other.submit(step_once)
            wait_until(lambda: run_concurrently(lock_waiters) == [1], 60)
            (number,) = run_concurrently(number_of_a_transaction)
        waiting.result()
        other.submit(connections.close_all).result()
    clock = CountClock.objects.get()
    assert clock.marked_by is not None and clock.marked_by > number


def test_nobody_moves_the_clock_by_hand(merchant: Merchant) -> None:
    TransactionFactory(merchant=merchant)
    before = CountClock.objects.get().closed
    for _ in range(3):
        at = "2050-01-01T00:00:02Z"
        CountClock.objects.update(closed=at, announced=at, target=at, marked_by=1)
        after = CountClock.objects.get()
        assert before <= after.closed <= after.announced < clock.now() + timedelta(minutes=2)
        assert after.announced.second % 5 == 0
        assert total(merchant) == 1
    close_all()
    assert total(merchant) == 1


def test_database_that_was_restored_closes_again(merchant: Merchant) -> None:
    TransactionFactory(merchant=merchant)
    step()
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        # Numbers of transactions of the database before.
        cursor.execute("UPDATE counts_countclock SET marked_by = 10^15")
    step()
    close_all()
    assert counted() == 2


def test_counted_rows_are_not_written_with_an_old_snapshot(merchant: Merchant) -> None:
    with pytest.raises(ProgrammingError, match="read committed"), transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        TransactionFactory(merchant=merchant)


def test_periods_close_a_minute_at_a_time_after_a_pause(merchant: Merchant) -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        cursor.execute("UPDATE counts_countclock SET closed = '2026-01-01', announced = '2026-01-01'")
    start = CountClock.objects.get().closed + timedelta(days=1)
    for minute in range(4):
        TransactionFactory(merchant=merchant, created_at=start + timedelta(minutes=2 * minute))
    assert (total(merchant), OpenPeriod.objects.count()) == (4, 4)
    closed = []
    while OpenPeriod.objects.exists():
        close_announced()
        closed.append(4 - OpenPeriod.objects.count())
        assert total(merchant) == 4
    assert closed == [0, 1, 2, 3, 4]
    assert not differences_of_counts()


@pytest.mark.parametrize("counted_list", COUNTED_LISTS, ids=lambda each: each.name)
def test_closing_reads_each_kind(counted_list: CountedList[Any]) -> None:
    """A list without an index of all its rows names its kinds in SQL."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT pg_get_functiondef('counts_close_{counted_list.name}'::regproc)")
        (definition,) = cursor.fetchone()
    named = set(re.findall(r"'([\w.]+)'", definition.split("LATERAL")[1]))
    if counted_list.is_merged:
        assert {value for kind in counted_list.kinds for value in kind.split("/")} <= named


def test_audit_looks_at_each_counted_list() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT substr(proname, 14) FROM pg_proc WHERE proname ~ '^counts_close_'")
        counted = {name for (name,) in cursor}
    assert counted == {each.name for each in COUNTED_LISTS}
