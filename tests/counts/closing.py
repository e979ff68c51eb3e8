"""Close the periods of counted lists in tests."""

from datetime import timedelta
from functools import partial

from django.db import connection

from bench.stack import wait_until
from core import clock
from counts import counting
from counts.models import CountClock, CountDelta, OpenPeriod

PATIENCE_SECONDS = 60.0
# Periods of the next minute close too, so that no test waits for the end of one.
step = partial(counting.roll_up, open_for=-timedelta(minutes=1))


def close_announced() -> None:
    """Wait until what was announced is closed: transactions of other databases of the server delay it too."""
    announced = CountClock.objects.get().announced

    def is_closed() -> bool:
        step()
        return CountClock.objects.get().closed >= announced

    wait_until(is_closed, PATIENCE_SECONDS)


def close_all() -> None:
    """Close all periods, also that of the present, and roll up."""
    now = clock.now()

    def are_counted() -> bool:
        step()
        is_closed = CountClock.objects.get().closed > now
        return is_closed and not (OpenPeriod.objects.exists() or CountDelta.objects.exists())

    wait_until(are_counted, PATIENCE_SECONDS)


def close_future() -> None:
    """For a test in one transaction, which closes nothing: count all rows from now on at once, by deltas."""
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        cursor.execute("UPDATE counts_countclock SET closed = '2200-01-01', announced = '2200-01-01'")
        cursor.execute("SET LOCAL session_replication_role = origin")
