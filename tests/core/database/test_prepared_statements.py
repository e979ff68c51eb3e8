"""Statements prepared at the level of libpq behave as those of Django's cursors."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import DataError, IntegrityError, OperationalError, ProgrammingError, connection, transaction

from core.database import rows
from core.database.prepared import MAX_STATEMENTS, PreparedStatements, numbered

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def no_wrappers(transactional_db: None) -> Iterator[None]:
    """Remove the recorder of locks: a connection with wrappers uses a cursor."""
    removed = list(connection.execute_wrappers)
    connection.execute_wrappers.clear()
    yield
    connection.execute_wrappers.extend(removed)


@pytest.fixture
def table() -> Iterator[str]:
    rows.run("CREATE TABLE prepared_test (id bigint PRIMARY KEY, text varchar(5))", [])
    yield "prepared_test"
    rows.run("DROP TABLE prepared_test", [])


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT 1", "SELECT 1"),
        ("SELECT %s, %s::int[]", "SELECT $1, $2::int[]"),
        ("SELECT 'a%%' LIKE %s", "SELECT 'a%' LIKE $1"),
    ],
)
def test_placeholders_become_numbers(sql: str, expected: str) -> None:
    assert numbered(sql) == expected


def test_prepared_statement_returns_the_values_of_a_cursor() -> None:
    sql = "SELECT %s::text, %s::bigint, %s::timestamptz, %s::bytea, %s::boolean, %s::text[], %s::json"
    values: list[Any] = [
        "ก'%s",
        -(2**62),
        datetime(2026, 11, 23, tzinfo=UTC),
        b"\x00\xff",
        None,
        ["a", None],
        '{"b": [1]}',
    ]
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        expected = cursor.fetchall()
    for _ in range(3):
        assert rows.run(sql, values).fetchall() == expected


def test_prepared_statement_counts_changed_rows(table: str) -> None:
    inserted = rows.run(f"INSERT INTO {table} SELECT n, 'a' FROM generate_series(1, %s::int) n", [3])
    assert inserted.rowcount == 3
    assert rows.run(f"UPDATE {table} SET text = %s WHERE id > %s", ["b", 1]).rowcount == 2
    assert rows.run(f"SELECT text FROM {table} WHERE id = %s", [9]).fetchone() is None


def test_refused_prepared_statement_raises_the_error_of_django(table: str) -> None:
    rows.run(f"INSERT INTO {table} VALUES (%s, %s)", [1, "a"])
    with pytest.raises(IntegrityError) as refused:
        rows.run(f"INSERT INTO {table} VALUES (%s, %s)", [1, "a"])
    assert refused.value.__cause__.diag.constraint_name == "prepared_test_pkey"  # type: ignore[union-attr]
    for text in ("too long", "\x00"):
        with pytest.raises(DataError):
            rows.run(f"INSERT INTO {table} VALUES (%s, %s)", [2, text])
    with pytest.raises(ProgrammingError):
        rows.run("SELECT missing", [])
    assert rows.run(f"SELECT count(*) FROM {table}", []).fetchone() == (1,)


def test_prepared_statement_works_after_the_server_lost_it() -> None:
    for _ in range(2):
        assert rows.run("SELECT %s::int", [1]).fetchone() == (1,)
        with connection.cursor() as cursor:
            cursor.execute("DEALLOCATE ALL")
    connection.close()  # the driver's own statements are gone too


def test_rollback_is_followed_by_no_refused_statement(monkeypatch: pytest.MonkeyPatch) -> None:
    rows.run("SELECT %s::int", [1])
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("DEALLOCATE ALL")  # as psycopg does after the rollback
        raise ZeroDivisionError
    tried: list[str] = []
    execute = PreparedStatements._execute

    def record(prepared: PreparedStatements, sql: str, values: Any) -> Any:
        tried.append(sql)
        return execute(prepared, sql, values)

    monkeypatch.setattr(PreparedStatements, "_execute", record)
    assert rows.run("SELECT %s::int", [1]).fetchone() == (1,)
    assert len(tried) == 1
    connection.close()  # the driver's own statements are gone too


def test_prepared_statement_works_after_its_columns_changed(table: str) -> None:
    sql = f"SELECT * FROM {table} WHERE id = %s"
    rows.run(f"INSERT INTO {table} VALUES (%s, %s)", [1, "a"])
    assert rows.run(sql, [1]).fetchone() == (1, "a")
    rows.run(f"ALTER TABLE {table} ALTER id TYPE text", [])
    assert rows.run(sql, ["1"]).fetchone() == ("1", "a")
    rows.run(f"ALTER TABLE {table} ADD number integer", [])
    assert rows.run(sql, ["1"]).fetchone() == ("1", "a", None)


def test_statement_in_a_transaction_is_rolled_back_with_it(table: str) -> None:
    insert = f"INSERT INTO {table} VALUES (%s, %s)"
    rows.run(insert, [1, "a"])
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        rows.run(insert, [2, "a"])
        raise ZeroDivisionError
    assert rows.run(f"SELECT count(*) FROM {table}", []).fetchone() == (1,)


@pytest.mark.slow
def test_ended_session_is_an_operational_error_and_the_next_session_works() -> None:
    with pytest.raises(OperationalError):
        rows.run("SELECT pg_terminate_backend(pg_backend_pid())", [])
    connection.close_if_unusable_or_obsolete()
    assert rows.run("SELECT %s::int", [1]).fetchone() == (1,)


@pytest.mark.slow
def test_connection_prepares_a_bounded_number_of_statements() -> None:
    for number in range(2 * MAX_STATEMENTS):
        assert rows.run(f"SELECT {number}, %s::int", [1]).fetchone() == (number, 1)
    prepared = rows.run("SELECT count(*) FROM pg_prepared_statements WHERE name LIKE 'fast%%'", [])
    assert prepared.fetchone()[0] <= MAX_STATEMENTS
    connection.close()
