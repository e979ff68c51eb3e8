"""Partitions of the test database, as they are after years of use."""

from datetime import UTC, date, datetime
from typing import Any

from django.db import connection
from django.db.models import Model

from core import clock
from core.database import partitions


def sql(statement: str, *values: Any) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(statement, values or None)
        return list(cursor.fetchall()) if cursor.description else []


def month_in(count: int) -> date:
    return partitions.later(partitions.month_of(clock.now()), count)


def instant(month: date) -> datetime:
    return datetime(month.year, month.month, 1, tzinfo=UTC)


def months(table: str) -> list[str]:
    """The partitions of the table, such as 2026_11, without the default one."""
    found = sql(
        "SELECT relname FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid"
        " WHERE inhparent = %s::regclass ORDER BY 1",
        table,
    )
    return [name.removeprefix(f"{table}_") for (name,) in found if not name.endswith("_default")]


def end_oldest(model: type[Model], last: date) -> None:
    """Let the oldest partition end with this month, as if the service had been installed then."""
    table = model._meta.db_table
    oldest, renamed, after = f"{table}_{months(table)[0]}", f"{table}_{last:%Y_%m}", partitions.later(last, 1)
    sql(f"ALTER TABLE {table} DETACH PARTITION {oldest}")
    sql(f"ALTER TABLE {oldest} RENAME TO {renamed}")
    ((until,),) = sql("SELECT operations_month_start(%s, %s)", table, after)
    sql(f"ALTER TABLE {table} ATTACH PARTITION {renamed} FOR VALUES FROM (MINVALUE) TO ('{until}')")
    partitions.make_ahead(model, instant(after))
