"""Prepared statements at the level of libpq, for short statements outside of transactions.

psycopg's cursors take 35 µs of Python for a statement, this 15 µs: no generators, no state of a cursor.
https://www.psycopg.org/psycopg3/docs/api/pq.html, https://www.postgresql.org/docs/current/libpq-exec.html
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import count
from typing import Any

import psycopg
from psycopg import errors
from psycopg.adapt import PyFormat, Transformer
from psycopg.pq import ExecStatus
from psycopg.pq.abc import PGresult

MAX_STATEMENTS = 100  # of a connection
# The server lost the statement (DEALLOCATE ALL, which psycopg sends after a rollback), or a migration changed
# its result. Neither has run anything.
STALE = {"26000", "0A000"}
NAMED = re.compile(r"%\((\w+)\)s")
_numbers = count()  # no name is used twice: the server may still have an old one


@dataclass(slots=True)
class Result:
    """The rows of a statement, with the methods of a cursor."""

    rows: list[Any]
    rowcount: int

    def fetchone(self) -> Any:
        return self.rows[0] if self.rows else None

    def fetchall(self) -> list[Any]:
        return self.rows


class PreparedStatements:
    """The statements that one connection has prepared. The connection must be in autocommit mode."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection
        self._statements: dict[tuple[str, tuple[int, ...]], _Statement] = {}
        self._dumper: Any = Transformer(connection)

    @property
    def is_full(self) -> bool:
        return len(self._statements) >= MAX_STATEMENTS

    def forget(self) -> None:
        """Prepare each statement again at its next use."""
        self._statements.clear()

    def execute(self, sql: str, values: Sequence[Any]) -> Result:
        """Run a statement with `%s` placeholders. Raises psycopg.Error."""
        try:
            return self._execute(sql, values)
        except psycopg.Error as error:
            if error.sqlstate not in STALE:
                raise
            self.forget()
            return self._execute(sql, values)

    def _execute(self, sql: str, values: Sequence[Any]) -> Result:
        dumper = self._dumper
        parameters: Any = dumper.dump_sequence(values, _formats(len(values)))
        types = dumper.types or ()
        statement = self._statements.get((sql, types)) or self._prepare(sql, types)
        result = self._connection.pgconn.exec_prepared(statement.name, parameters, dumper.formats)
        if result.status == ExecStatus.TUPLES_OK:
            return Result(statement.load(result), result.ntuples)
        _check(result)
        return Result([], result.command_tuples or 0)

    def _prepare(self, sql: str, types: tuple[int, ...]) -> "_Statement":
        name = f"fast_{next(_numbers)}".encode()
        _check(self._connection.pgconn.prepare(name, numbered(sql).encode(), types))
        statement = self._statements[sql, types] = _Statement(name, Transformer(self._connection))
        return statement


class _Statement:
    """A prepared statement, and how to convert the columns of its result."""

    __slots__ = ("_is_ready", "_loader", "name")

    def __init__(self, name: bytes, loader: Any) -> None:
        self.name = name
        self._loader, self._is_ready = loader, False

    def load(self, result: PGresult) -> list[Any]:
        """The rows. A prepared statement has the same columns each time, so it looks for converters once."""
        self._loader.set_pgresult(result, set_loaders=not self._is_ready)
        self._is_ready = True
        rows: list[Any] = self._loader.load_rows(0, result.ntuples, tuple)
        self._loader.set_pgresult(None, set_loaders=False)  # frees the memory of the result
        return rows


@lru_cache
def _formats(number: int) -> list[PyFormat]:
    return [PyFormat.AUTO] * number


@lru_cache(maxsize=1024)
def numbered(sql: str) -> str:
    """The statement with `$1, $2, ...` in place of each `%s`, as PostgreSQL reads it."""
    first, *rest = sql.split("%s")
    marked = first + "".join(f"${number}{part}" for number, part in enumerate(rest, 1))
    return marked.replace("%%", "%")


@lru_cache(maxsize=1024)
def positional(sql: str) -> tuple[str, tuple[str, ...]]:
    """The statement with `%s` in place of each `%(name)s`, and the names in their order."""
    return NAMED.sub("%s", sql), tuple(NAMED.findall(sql))


def _check(result: PGresult) -> None:
    if result.status != ExecStatus.COMMAND_OK:
        error = errors.error_from_result(result)
        # Without a state libpq reports it, and not the server: the connection is lost.
        raise error if error.sqlstate else psycopg.OperationalError(str(error))
