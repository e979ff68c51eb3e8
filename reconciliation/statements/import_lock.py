"""Imports in the console come one after the other: each keeps a thread of the web server for minutes."""

from collections.abc import Iterator
from contextlib import closing, contextmanager

from django.db import connection

# Any constant: it names the lock of whoever imports.
LOCK_ID = 0x7374_6D74
MAX_DURATION = "1h"
"""An import that takes longer, such as that of a frozen process, loses its turn."""


class ImportAlreadyRunning(Exception):
    """Somebody has the turn; the message is a sentence for staff."""

    def __init__(self) -> None:
        super().__init__("Another import is running, so this file was not read. Try again when it has ended.")


@contextmanager
def hold() -> Iterator[None]:
    """Have the turn, of all processes, until the end of the block. Raises Taken at once if another has it.

    The lock is that of a transaction on a connection of its own: the import commits many times, and behind
    pgbouncer a session is not ours between two commits.
    """
    with closing(connection.copy()) as connection_copy:
        connection_copy.set_autocommit(False)
        with connection_copy.cursor() as cursor:
            cursor.execute(f"SET LOCAL idle_in_transaction_session_timeout = '{MAX_DURATION}'")
            cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [LOCK_ID])
            (acquired,) = cursor.fetchone()
        if not acquired:
            raise ImportAlreadyRunning
        yield
