"""`manage.py` says in two lines that the database is away, and shows every other error whole."""

import os
import runpy
import subprocess
import sys

import psycopg
import pytest
from django.db import OperationalError, connection, transaction

from config import management
from tests.stack import ROOT


@pytest.mark.slow
def test_command_without_the_database_ends_with_two_lines() -> None:
    done = subprocess.run(
        [sys.executable, "manage.py", "audit"],
        cwd=ROOT,
        env=os.environ | {"DATABASE_URL": "postgres://nobody:nothing@127.0.0.1:1/away"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, "")
    first, second = done.stderr.splitlines()
    assert first.startswith("The database does not answer: connection failed: ")
    assert second == "If it is that of `make run`, start it first."


def test_command_whose_statement_takes_too_long_shows_its_traceback(
    db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run_slow_statement(arguments: list[str]) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL statement_timeout = 1")
            cursor.execute("SELECT pg_sleep(10)")

    monkeypatch.setattr(management, "execute_from_command_line", run_slow_statement)
    with pytest.raises(OperationalError) as raised:
        runpy.run_path(str(ROOT / "manage.py"), run_name="__main__")
    transaction.set_rollback(True)
    assert isinstance(raised.value.__cause__, psycopg.errors.QueryCanceled)
