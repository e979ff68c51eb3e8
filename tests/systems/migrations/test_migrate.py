"""`manage.py migrate` on a database that others use meanwhile."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from django.db import connection, models
from django.db.migrations.state import ProjectState

from core.database.migrations import BuildIndex
from operations.management.commands.migrate import LOCK_SECONDS
from payments.models import Payment
from tests import database_template
from tests.commands import warm
from tests.stack import ROOT, wait_until
from tests.tables import LOCKS

DEADLINE_SECONDS = 120
# The tables that come later refer to merchants, so they need this table without anybody who writes to it.
BEFORE = ("merchants", "0001")
# Until its transaction ends, nobody can refer to the table.
IN_USE = "LOCK TABLE merchants_merchant IN ROW EXCLUSIVE MODE"
WAITING = f"SELECT count(*) FROM {LOCKS} WHERE NOT granted AND relation = 'merchants_merchant'::regclass"


@pytest.fixture
def database() -> Iterator[str]:
    """The URL of a database in which the migrations after merchants are missing."""
    url = database_template.new_database(f"migrate_{os.getpid()}", template="template0")
    assert migrate(url, *BEFORE).wait(DEADLINE_SECONDS) == 0
    yield url
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as server:
        server.execute(f"DROP DATABASE migrate_{os.getpid()} WITH (FORCE)")


def migrate(url: str, *arguments: str, log: Path = Path(os.devnull)) -> subprocess.Popen[bytes]:
    command = [*warm(), "manage.py", "migrate", "--skip-checks", *arguments]
    environ = {**os.environ, "DATABASE_URL": url}
    with log.open("wb") as errors:
        return subprocess.Popen(command, cwd=ROOT, env=environ, stdout=subprocess.DEVNULL, stderr=errors)


def is_applied(observer: psycopg.Connection[tuple[int]]) -> bool:
    found = observer.execute("SELECT count(to_regclass('public.payments_payment'))")
    return found.fetchone() == (1,)


@pytest.mark.slow
def test_migration_gives_way_to_requests_and_tries_again(database: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    with psycopg.connect(database) as user, psycopg.connect(database, autocommit=True) as observer:
        user.execute(IN_USE)
        process = migrate(database, log=log)
        wait_until(lambda: observer.execute(WAITING).fetchone() == (1,), DEADLINE_SECONDS)
        # A request that comes now waits behind the migration, but not longer than the limit.
        observer.execute(f"SET statement_timeout = '{5 * LOCK_SECONDS}s'")
        with observer.transaction():
            observer.execute(IN_USE)
        wait_until(lambda: "Try 1 of" in log.read_text(), DEADLINE_SECONDS)
        assert not is_applied(observer)
        user.rollback()
        assert process.wait(DEADLINE_SECONDS) == 0
        assert is_applied(observer)


@pytest.mark.slow
def test_two_migrations_at_once_take_turns(database: str, tmp_path: Path) -> None:
    logs = [tmp_path / "first", tmp_path / "second"]
    with psycopg.connect(database) as user, psycopg.connect(database, autocommit=True) as observer:
        user.execute(IN_USE)
        processes = [migrate(database, log=log) for log in logs]
        wait_until(lambda: any("Another migrate" in log.read_text() for log in logs), DEADLINE_SECONDS)
        user.rollback()
        assert [process.wait(DEADLINE_SECONDS) for process in processes] == [0, 0]
        assert is_applied(observer)


INDEX = models.Index(fields=["client_name"], name="payment_by_client_name")


def build(operation: BuildIndex) -> None:
    state = ProjectState.from_apps(Payment._meta.apps)
    with connection.schema_editor(atomic=False) as editor:
        operation.database_forwards("payments", editor, state, state)


def is_valid(name: str) -> bool | None:
    """Whether the index is complete; None if there is none."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass(%s)", [name])
        found = cursor.fetchone()
    return None if found is None else bool(found[0])


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_index_is_built_again_after_a_build_that_broke_off() -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE INDEX {INDEX.name} ON payments_payment (client_name)")
        cursor.execute("UPDATE pg_index SET indisvalid = false WHERE indexrelid = %s::regclass", [INDEX.name])
    try:
        assert is_valid(INDEX.name) is False
        build(BuildIndex("payment", INDEX))
        assert is_valid(INDEX.name) is True
    finally:
        with connection.cursor() as cursor:
            cursor.execute(f"DROP INDEX IF EXISTS {INDEX.name}")
