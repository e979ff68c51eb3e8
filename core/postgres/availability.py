"""Distinguishes a database that cannot be reached from one that refuses a statement."""

import psycopg

# The class of SQLSTATE that means a broken connection, and the states in which a server takes no work:
# it shuts down, it crashed, it starts, it has no connection left.
CONNECTION_CLASS = "08"
UNAVAILABLE_STATES = {"57P01", "57P02", "57P03", "53300"}


def is_unavailable(error: BaseException | None) -> bool:
    """Whether the error, or what caused it, means that the database cannot be reached."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        if isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
            state = error.sqlstate
            return state is None or state.startswith(CONNECTION_CLASS) or state in UNAVAILABLE_STATES
        seen.add(id(error))
        error = error.__cause__ or error.__context__
    return False
