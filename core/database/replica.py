"""Reads on a standby that see all that was committed before them. See docs/decisions/90-replica.md.

A read asks the primary for the end of its log, and the standby whether it has replayed that much. So a
merchant finds its own objects, whichever process wrote them. A standby that is away or behind is left alone
for some seconds, and the primary answers.
"""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, Error, connections
from psycopg.errors import QueryCanceled

from core.database.cut import connection_cut_at
from core.deadlines import Deadline

log = logging.getLogger("database")
ALIAS = "replica"
# A standby in the same network replays a commit within milliseconds.
CATCH_UP_SECONDS = 0.05
POLL_SECONDS = 0.002
# A standby that hangs is cut off after these.
CHECK_SECONDS, READ_SECONDS = 1.0, 15.0
# So long a process leaves a standby alone that was away or behind.
PAUSE_SECONDS = 5.0
_END_OF_LOG = "SELECT pg_current_wal_flush_lsn()::text"
_HAS_REPLAYED = "SELECT pg_is_in_recovery() AND pg_last_wal_replay_lsn() >= %s::pg_lsn"
P = ParamSpec("P")
R = TypeVar("R")


_paused_until = Deadline(0.0)  # for this process


def is_configured() -> bool:
    return ALIAS in settings.DATABASES


def reads(function: Callable[P, R]) -> Callable[P, R]:
    """Outside of a transaction, let what only reads use the standby. If that fails, the primary is read."""

    @wraps(function)
    def read(*arguments: P.args, **options: P.kwargs) -> R:
        if not _is_usable():
            return function(*arguments, **options)
        primary: Any = connections[DEFAULT_DB_ALIAS]
        (end,) = primary.execute_fast(_END_OF_LOG, []).fetchone()
        try:
            with _standby() as standby:
                if _catches_up(standby, end):
                    with connection_cut_at(Deadline.after(READ_SECONDS)):
                        return function(*arguments, **options)
            _pause("is behind")
        except Error as error:
            if isinstance(error.__cause__, QueryCanceled):
                raise  # it takes too long on the primary too
            _pause(f"failed: {type(error.__cause__ or error).__name__}")
        return function(*arguments, **options)

    return read


def lag_bytes() -> int:
    """How much of the log of the primary the standby has not replayed. Raises DatabaseError."""
    primary: Any = connections[DEFAULT_DB_ALIAS]
    (end,) = primary.execute_fast(_END_OF_LOG, []).fetchone()
    with _standby() as standby, connection_cut_at(Deadline.after(CHECK_SECONDS)):
        lag = standby.execute_fast("SELECT %s::pg_lsn - pg_last_wal_replay_lsn()", [end]).fetchone()[0]
    return max(0, int(lag))


def _is_usable() -> bool:
    """Not in a transaction, and not within another read."""
    if not is_configured() or not _paused_until.is_past:
        return False
    current = connections[DEFAULT_DB_ALIAS]
    return current.alias == DEFAULT_DB_ALIAS and not current.in_atomic_block


@contextmanager
def _standby() -> Iterator[Any]:
    """The connection of this thread is that of the standby, with the same limits of statements."""
    primary: Any = connections[DEFAULT_DB_ALIAS]
    standby: Any = connections[ALIAS]
    standby.close_if_unusable_or_obsolete()
    standby.execute_wrappers = list(primary.execute_wrappers)
    connections[DEFAULT_DB_ALIAS] = standby
    try:
        yield standby
    finally:
        connections[DEFAULT_DB_ALIAS] = primary
        standby.execute_wrappers = []


def _catches_up(standby: Any, end: str) -> bool:
    until = Deadline.after(CATCH_UP_SECONDS)
    with connection_cut_at(Deadline.after(CHECK_SECONDS)):
        while not standby.execute_fast(_HAS_REPLAYED, [end]).fetchone()[0]:
            if until.is_past:
                return False
            time.sleep(POLL_SECONDS)
    return True


def _pause(reason: str) -> None:
    global _paused_until  # noqa: PLW0603 (a process has one)
    _paused_until = Deadline.after(PAUSE_SECONDS)
    log.warning("the replica %s: the primary answers for %.0f s", reason, PAUSE_SECONDS)
