"""Tables that PostgreSQL keeps in one partition for each month, so that an old month goes at once.

A model says by which column: `partitions = Monthly("started_at")`. `core.migrations.PartitionByMonth` does
it in a migration. A month begins at midnight in UTC. Rows of a month without a partition go to the default
partition, so no row is ever refused.

The application has no right to change tables. It makes and drops partitions by functions of the owner, see
`operations/sql/partitions.sql`.
"""

import time
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

from django.db import OperationalError, connection
from django.db.models import Model
from psycopg.errors import LockNotAvailable

from core import ids

# Three months in which nobody notices that the task fails.
MONTHS_AHEAD = 3
LOCK_TRIES, LOCK_PAUSE = 10, 1.0


@dataclass(frozen=True, slots=True)
class Monthly:
    """The column that tells the month: a time, or a public id with this prefix."""

    column: str
    prefix: str = ""

    def start(self, month: date) -> str:
        """The smallest value of the column in the month."""
        at = datetime(month.year, month.month, 1, tzinfo=UTC)
        return ids.first(self.prefix, at) if self.prefix else at.isoformat()


def month_of(at: datetime) -> date:
    return at.astimezone(UTC).date().replace(day=1)


def later(month: date, count: int) -> date:
    """The month `count` months later."""
    years, index = divmod(month.month - 1 + count, 12)
    return date(month.year + years, index + 1, 1)


def make_ahead(model: type[Model], now: datetime) -> list[str]:
    """Make the partitions of this month and of the next ones. Return those that were missing."""
    months = [later(month_of(now), count) for count in range(MONTHS_AHEAD + 1)]
    return [name for month in months if (name := _call(making(model._meta.db_table, _key(model), month)))]


def drop_old(model: type[Model], before: datetime) -> list[str]:
    """Drop the months that ended before then. Return the partitions that are gone.

    Rows of these months in the default partition are deleted.
    """
    month = month_of(before)
    values = (model._meta.db_table, month, _key(model).start(month))
    return list(_call(("SELECT operations_drop_partitions(%s, %s, %s)", values)))


def making(table: str, key: Monthly, month: date) -> tuple[str, tuple[Any, ...]]:
    """The statement that makes one partition, and its values."""
    values = (table, month, key.start(month), key.start(later(month, 1)))
    return "SELECT operations_make_partition(%s, %s, %s, %s)", values


def _key(model: type[Model]) -> Monthly:
    return model.partitions  # type: ignore[attr-defined,no-any-return]


def _call(statement: tuple[str, tuple[Any, ...]]) -> Any:
    """The result of a function that waits for a lock for a second at most, because others wait behind it."""
    for tries_left in reversed(range(LOCK_TRIES)):
        try:
            with connection.cursor() as cursor:
                cursor.execute(*statement)
                return cursor.fetchone()[0]
        except OperationalError as error:
            if not tries_left or not isinstance(error.__cause__, LockNotAvailable):
                raise
        time.sleep(LOCK_PAUSE)
    raise AssertionError("not reached")
