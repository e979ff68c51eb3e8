"""A deadline for everything that a thread does over its database connection."""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection

from core.deadlines import Deadline


@contextmanager
def connection_cut_at(deadline: Deadline) -> Iterator[None]:
    """Cut the connection soon after the deadline, which raises OperationalError in the block.

    A `statement_timeout` does not help if the server hangs, and counts each statement alone.
    """
    connection.ensure_connection()
    with socket.socket(fileno=os.dup(connection.connection.fileno())) as sock, deadline.shuts_down(sock):
        yield
