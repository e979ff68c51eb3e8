"""Tables with a partition for each month: none is missing, old ones go."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from datetime import date, datetime, timedelta
from io import StringIO

import pytest
import time_machine
from django.core.management import call_command
from django.db import connection, transaction

from core import clock, ids
from core.database import partitions
from core.database.roles import APPLICATION, REPORTS
from request_log.models import RequestRecord
from tests.conftest import Shop
from tests.months import end_oldest, instant, month_in, months, sql
from tests.request_log.builders import make_records
from tests.sqlstates import NOT_ALLOWED, sqlstate
from tests.stack import wait_until
from tests.tables import LOCKS

pytestmark = [pytest.mark.slow, pytest.mark.django_db]
TABLE = RequestRecord._meta.db_table
SECONDS = 60


@pytest.fixture(autouse=True)
def roles(db: None) -> None:
    call_command("database_roles", stdout=StringIO())


def rows_in(partition: str, table: str = TABLE) -> int:
    ((count,),) = sql(f"SELECT count(*) FROM {table}_{partition}")
    return int(count)


@contextmanager
def acting_as(role: str) -> Iterator[None]:
    with transaction.atomic():
        sql(f"SET LOCAL ROLE {role}")
        yield


@pytest.mark.parametrize(
    ("month", "count", "expected"),
    [
        (date(2026, 11, 1), 0, date(2026, 11, 1)),
        (date(2026, 11, 1), 1, date(2026, 12, 1)),
        (date(2026, 11, 1), 2, date(2027, 1, 1)),
        (date(2026, 12, 1), 25, date(2029, 1, 1)),
    ],
)
def test_months_are_counted_over_the_end_of_a_year(month: date, count: int, expected: date) -> None:
    assert partitions.later(month, count) == expected


def test_month_begins_at_midnight_in_utc() -> None:
    before = datetime(2026, 12, 1, 6, 59, tzinfo=clock.BANGKOK)
    assert partitions.month_of(before) == date(2026, 11, 1)
    assert partitions.month_of(before + timedelta(minutes=1)) == date(2026, 12, 1)


@pytest.mark.parametrize("month", [date(2023, 12, 1), date(2026, 11, 1), date(2027, 1, 1), date(2051, 12, 1)])
def test_database_knows_where_a_month_begins(month: date) -> None:
    def start(table: str) -> str:
        ((found,),) = sql("SELECT operations_month_start(%s, %s)", table, month)
        return str(found)

    assert start(TABLE) == ids.first("rlg_", instant(month))
    assert start("reconciliation_inquiryanswer") == ids.first("pay_", instant(month))
    assert datetime.fromisoformat(start("webhooks_deliveryattempt")) == instant(month)


def test_three_months_are_made_ahead_and_only_once() -> None:
    now = clock.now()
    partitions.make_ahead(RequestRecord, now)
    assert partitions.make_ahead(RequestRecord, now) == []
    with time_machine.travel(instant(month_in(2)), tick=False):
        made = partitions.make_ahead(RequestRecord, clock.now())
    assert made == [f"{TABLE}_{month_in(count):%Y_%m}" for count in (4, 5)]


def test_row_of_a_month_without_partition_is_kept_where_it_is(shop: Shop) -> None:
    far = instant(month_in(7))
    make_records(shop, 3, created_at=far)
    assert rows_in("default") == 3
    made = partitions.make_ahead(RequestRecord, far)
    assert made == [f"{TABLE}_{month_in(count):%Y_%m}" for count in (8, 9, 10)]
    assert (rows_in("default"), RequestRecord.objects.count()) == (3, 3)


def test_only_whole_months_are_dropped(shop: Shop) -> None:
    old, limit = instant(month_in(-1)) - timedelta(seconds=1), instant(month_in(-1))
    end_oldest(RequestRecord, partitions.month_of(old))
    make_records(shop, 2, created_at=old)
    (kept,) = make_records(shop, 1, created_at=limit)
    assert partitions.drop_old(RequestRecord, limit - timedelta(seconds=1)) == []
    assert partitions.drop_old(RequestRecord, limit + timedelta(days=20)) == [f"{TABLE}_{old:%Y_%m}"]
    assert [each.pk for each in RequestRecord.objects.all()] == [kept]


def test_old_row_outside_of_all_months_is_deleted_too(shop: Shop) -> None:
    old = instant(month_in(-3))
    end_oldest(RequestRecord, partitions.month_of(old))
    partitions.drop_old(RequestRecord, instant(month_in(-2)))
    make_records(shop, 1, created_at=old)
    assert rows_in("default") == 1
    partitions.drop_old(RequestRecord, instant(month_in(-2)))
    assert rows_in("default") == 0


def test_month_that_has_not_ended_is_never_dropped() -> None:
    assert dropping(TABLE, month_in(1)) == NOT_ALLOWED


def dropping(table: str, month: date) -> str | None:
    """With which SQLSTATE it is refused to drop the months before."""
    return sqlstate("SELECT operations_drop_partitions(%s, %s)", table, month)


def test_application_may_only_make_and_drop_months() -> None:
    with acting_as(APPLICATION):
        assert len(partitions.make_ahead(RequestRecord, instant(month_in(9)))) == 4
        partitions.drop_old(RequestRecord, clock.now())
    (first, *_) = months(TABLE)
    for statement in (
        f"DROP TABLE {TABLE}_{first}",
        f"SELECT * FROM {TABLE}_{first}",
        f"ALTER TABLE {TABLE} ADD x int",
    ):
        with acting_as(APPLICATION):
            assert sqlstate(statement) == NOT_ALLOWED


@pytest.mark.parametrize("table", ["payments_payment", "pg_catalog.pg_class"])
def test_other_tables_are_refused(table: str) -> None:
    with acting_as(APPLICATION):
        assert dropping(table, month_in(-5)) == NOT_ALLOWED


def test_reports_may_neither_make_nor_drop() -> None:
    with acting_as(REPORTS):
        assert dropping(TABLE, month_in(-5)) == NOT_ALLOWED


@pytest.mark.django_db(transaction=True)
def test_locked_table_is_tried_again() -> None:
    month = instant(month_in(20))

    def make() -> list[str]:
        with closing(connection):
            return partitions.make_ahead(RequestRecord, month)

    try:
        with ThreadPoolExecutor(1) as executor:
            with transaction.atomic():
                sql(f"LOCK TABLE {TABLE} IN SHARE UPDATE EXCLUSIVE MODE")
                making = executor.submit(make)
                for _ in range(2):
                    wait_until(is_anyone_waiting, SECONDS)
                    wait_until(lambda: not is_anyone_waiting(), SECONDS)
            assert len(making.result()) == 4
    finally:
        for name in months(TABLE)[-4:]:
            sql(f"DROP TABLE {TABLE}_{name}")


def is_anyone_waiting() -> bool:
    return bool(sql(f"SELECT 1 FROM {LOCKS} WHERE NOT granted AND relation = %s::regclass", TABLE))
