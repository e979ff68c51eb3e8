"""How the database refuses a statement, by SQLSTATE. An unknown column or a typing error is another state."""

from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO
from typing import Any

from django.core.management import call_command
from django.db import DatabaseError, connection, transaction

from core.database.roles import APPLICATION

NOT_NULL_VIOLATION, FOREIGN_KEY_VIOLATION = "23502", "23503"
UNIQUE_VIOLATION, CHECK_VIOLATION = "23505", "23514"
LOCK_NOT_AVAILABLE = "55P03"
NOT_ALLOWED = "42501"  # insufficient_privilege: never allowed


def sqlstate_of(refusal: BaseException) -> str:
    return str(getattr(refusal.__cause__, "sqlstate", None))


def run(sql: str, *values: Any) -> None:
    """Run a statement in a savepoint, with all constraints checked at once."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute(sql, values)


def sqlstate(sql: str, *values: Any) -> str | None:
    """Return the SQLSTATE with which the database refuses a statement; None if it accepts it."""
    try:
        run(sql, *values)
    except DatabaseError as error:
        return sqlstate_of(error)
    return None


@contextmanager
def rolled_back() -> Iterator[None]:
    """Undo what the block changes in the database."""
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


@contextmanager
def as_application() -> Iterator[None]:
    """Run with the rights that web and workers have in the guide."""
    call_command("database_roles", stdout=StringIO())
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"SET LOCAL ROLE {APPLICATION}")
        yield
        cursor.execute("RESET ROLE")


@contextmanager
def setting(name: str) -> Iterator[None]:
    """Let triggers allow what `resealing` or `erasing` needs, within a transaction."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT set_config(%s, 'on', true)", [f"qr.{name}"])
        yield
        cursor.execute("SELECT set_config(%s, 'off', true)", [f"qr.{name}"])


def within_a_trigger(sql: str) -> str:
    """Statements that run `sql` in a trigger of a temporary table, as any role of the database can."""
    return f"""
        CREATE TEMPORARY TABLE door (id int) ON COMMIT DROP;
        CREATE FUNCTION pg_temp.pass() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN {sql}; RETURN NULL; END $$;
        CREATE TRIGGER pass AFTER INSERT ON door FOR EACH ROW EXECUTE FUNCTION pg_temp.pass();
        INSERT INTO door VALUES (1);
    """
