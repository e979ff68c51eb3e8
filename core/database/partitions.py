"""Tables that PostgreSQL keeps in one partition for each month, so that an old month goes at once.

The migration of a new table calls `operations_partition_by_month`. A month begins at midnight in UTC. Rows
of a month without a partition go to the default partition, so no row is ever refused. They stay there until
they are old.

The application has no right to change tables. It makes and drops partitions by functions of the owner, see
`operations/sql/partitions.sql`.
"""

import time
from datetime import UTC, date, datetime
from typing import Any, cast

from django.db import OperationalError, connection
from django.db.models import Model
from psycopg.errors import DeadlockDetected, LockNotAvailable

# If the job fails for three months, no month is missing yet.
MONTHS_AHEAD = 3
LOCK_TRIES, LOCK_PAUSE = 10, 1.0
GIVES_WAY = (LockNotAvailable, DeadlockDetected)


def month_of(at: datetime) -> date:
    return at.astimezone(UTC).date().replace(day=1)


def later(month: date, count: int) -> date:
    years, index = divmod(month.month - 1 + count, 12)
    return date(month.year + years, index + 1, 1)


def make_ahead(model: type[Model], now: datetime) -> list[str]:
    """Make the partitions of this month and of the next ones. Return those that were missing."""
    months = [later(month_of(now), count) for count in range(MONTHS_AHEAD + 1)]
    make = "SELECT operations_make_partition(%s, %s)"
    made = [_call(make, (model._meta.db_table, month))[0] for month in months]
    return [name for name in made if name is not None]


def drop_old(model: type[Model], before: datetime) -> list[str]:
    """Drop the months that ended before then, also from the default partition. Return what is gone."""
    statement = "SELECT dropped, deleted FROM operations_drop_partitions(%s, %s)"
    dropped, deleted = _call(statement, (model._meta.db_table, month_of(before)))
    while deleted:
        _, deleted = _call(statement, (model._meta.db_table, month_of(before)))
    return list(dropped)


def _call(statement: str, values: tuple[Any, ...]) -> tuple[Any, ...]:
    """The row of a function that gives way if others use the table, and is tried again."""
    for tries_left in reversed(range(LOCK_TRIES)):
        try:
            with connection.cursor() as cursor:
                cursor.execute(statement, values)
                return cast(tuple[Any, ...], cursor.fetchone())
        except OperationalError as error:
            if not tries_left or not isinstance(error.__cause__, GIVES_WAY):
                raise
        time.sleep(LOCK_PAUSE)
    raise AssertionError("not reached")
