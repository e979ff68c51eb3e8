"""Distinguishes a database that cannot be reached from one that refuses a statement."""

import psycopg
from django.db import InterfaceError, InternalError, OperationalError

# What Django raises for a lost connection, and for some refused statements.
CONNECTION_ERRORS = (OperationalError, InterfaceError, InternalError)
# The class of SQLSTATE that means a broken connection, and the states in which a server takes no work:
# it shuts down, it crashed, it starts, it has no connection left, or it is a standby: a proxy such as HAProxy
# may lead to one for some seconds, while another server becomes the primary.
CONNECTION_CLASS = "08"
UNAVAILABLE_STATES = {"57P01", "57P02", "57P03", "53300", "25006"}
DRIVER_ERRORS = psycopg.OperationalError | psycopg.InterfaceError | psycopg.errors.ReadOnlySqlTransaction


def is_unavailable(error: BaseException | None) -> bool:
    """Whether the error, or what caused it, means that the database cannot be reached."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        if isinstance(error, DRIVER_ERRORS):
            state = error.sqlstate
            return state is None or state.startswith(CONNECTION_CLASS) or state in UNAVAILABLE_STATES
        # Only psycopg itself raises this class, errors of the server are of its subclasses: the end of the
        # connection came behind the result of a COMMIT.
        if type(error) is psycopg.InternalError:
            return True
        seen.add(id(error))
        error = error.__cause__ or error.__context__
    return False
