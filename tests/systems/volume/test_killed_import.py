"""An import that is killed goes on after the last line that it stored."""

import os
import signal
import subprocess
from pathlib import Path

import pytest
from django.conf import settings
from django.db import connection, transaction

from core import clock
from core.database import rows
from ledger.models import Journal
from reconciliation.matching import deduplication, services as matching
from reconciliation.models import BankTransaction, StatementLine
from reconciliation.statements import statement_file
from reconciliation.statements.lines import FileProblems
from tests.commands import warm
from tests.reconciliation.statements.statement_files import (
    open_shop_with_biller,
)
from tests.stack import ROOT, wait_until
from tests.systems.volume.test_large_files import write

pytestmark = [
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("audit_is_clean"),
]
OTHER_SESSIONS = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()
"""


def test_killed_import_resumes_after_the_last_stored_line(tmp_path: Path) -> None:
    open_shop_with_biller("Killed")
    count = 4_000
    path = write(tmp_path / "day.txt", count)
    for stored in (500, 2_000):
        kill_import(path, stored)
    assert StatementLine.objects.count() < count
    ended = start(path)
    assert ended.wait(120) == 0
    matching.apply_unapplied(now=clock.now() + matching.UNAPPLIED_AFTER * 2)
    assert (
        BankTransaction.objects.count() == StatementLine.objects.count() == Journal.objects.count() == count
    )
    assert set(BankTransaction.objects.values_list("match_result", flat=True)) == {"unmatched"}


def start(path: Path) -> "subprocess.Popen[bytes]":
    """Start the command in a process of its own on this test's database."""
    given, ours = os.environ["DATABASE_URL"], connection.settings_dict["NAME"]
    environ = os.environ | {"DATABASE_URL": f"{given.rsplit('/', 1)[0]}/{ours}"}
    environ["FIELD_ENCRYPTION_KEYS"] = ",".join(settings.FIELD_ENCRYPTION_KEYS)
    command = [*warm(), "manage.py", "import_statement", str(path), "--bank", "sandbox", "--quiet"]
    command.append("--skip-checks")
    return subprocess.Popen(command, cwd=ROOT, env=environ, stdout=subprocess.DEVNULL)


def kill_import(path: Path, stored: int) -> None:
    """Start to import the file, and kill the process when it has stored so many lines.

    It cannot be faster than this test: it waits for a lock of the last line.
    """
    with path.open("rb") as stream, transaction.atomic():
        *_, last = statement_file.open_file(stream, path.name).read_lines(FileProblems())
        assert last.parsed
        deduplication.lock_names([deduplication.lock_name("sandbox", last.parsed)])
        importer = start(path)
        wait_until(lambda: StatementLine.objects.count() >= stored, 60)
        importer.send_signal(signal.SIGKILL)
        importer.wait()
    wait_until(lambda: rows.run(OTHER_SESSIONS, []).fetchone() == (0,), 60)
