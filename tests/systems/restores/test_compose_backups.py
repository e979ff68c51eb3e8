"""The program that makes and restores the backups of the Compose file, with a real PostgreSQL."""

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import psycopg
import pytest
import yaml

from config.devstack import ports
from tests import system_postgres
from tests.memory import server_folder
from tests.stack import ROOT, wait_until

PROGRAM = ROOT / "deploy" / "compose" / "backup.sh"
START_SECONDS = 60.0
pytestmark = pytest.mark.slow


class Containers:
    """PostgreSQL with the command of the Compose file, and a folder in the place of /backups."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.programs, self.port = folder, system_postgres.programs(), ports.pick()
        self.data, self.backups, self.account = folder / "data", folder / "backups", system_postgres.account()
        self.backups.mkdir()
        self.program = Path(shutil.copy(PROGRAM, folder))  # where `nobody` can read it
        self.environ = {
            "PATH": f"{self.programs}:{os.environ['PATH']}",
            "BACKUPS": str(self.backups),
            "PGDATA": str(self.data),
            "PGHOST": str(folder),
            "PGPORT": str(self.port),
            "PGUSER": "postgres",
        }
        if self.account is not None:
            self.account.own(folder)
        self._run("initdb", "--username=postgres", "--auth=trust", "--encoding=UTF8", "--no-sync")
        self.server: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, and wait until it takes writes."""
        service = yaml.safe_load((ROOT / "deploy" / "compose.yaml").read_text())["services"]["postgres"]
        command = [each.replace("/backup.sh", str(self.program)) for each in service["command"]]
        listen = ["-h", "", "-p", str(self.port), "-k", str(self.folder)]
        self.server = subprocess.Popen(
            [*command, *listen], env=self.environ, stderr=subprocess.DEVNULL, **self._as_account()
        )
        wait_until(self._takes_writes, START_SECONDS)

    def _takes_writes(self) -> bool:
        try:
            return self.query("SELECT pg_is_in_recovery()") is False
        except psycopg.OperationalError:
            return False

    def query(self, statement: str) -> object:
        address = f"host={self.folder} port={self.port} user=postgres"
        with psycopg.connect(address, autocommit=True) as connection:
            found = connection.execute(statement.encode())
            row = found.fetchone() if found.description else None
        return row[0] if row else None

    def archive(self) -> datetime:
        """Return the time, when all until then is archived."""
        at = self.query("SELECT clock_timestamp()")
        name = self.query("SELECT pg_walfile_name(pg_switch_wal())")
        wait_until((self.backups / "wal" / str(name)).exists, START_SECONDS)
        assert isinstance(at, datetime)
        return at

    def stop(self, number: int = signal.SIGINT) -> None:
        if self.server is not None:
            self.server.send_signal(number)
            self.server.wait()
            self.server = None

    def backup(self, *arguments: str) -> None:
        self._run(self.program, *arguments)

    def _run(self, *command: object) -> None:
        done = subprocess.run(
            [*map(str, command)],
            env=self.environ,
            capture_output=True,
            text=True,
            check=False,
            **self._as_account(),
        )
        assert done.returncode == 0, done.stderr

    def _as_account(self) -> dict[str, Any]:
        if self.account is None:
            return {}
        return {"user": self.account.uid, "group": self.account.gid, "extra_groups": [], "cwd": "/"}


@pytest.fixture
def containers() -> Iterator[Containers]:
    with server_folder("compose-backups-") as folder:
        made = Containers(folder)
        made.start()
        made.query("CREATE TABLE payment (id int)")
        yield made
        made.stop()


def test_lost_data_are_restored_to_a_point_in_time_and_then_to_the_end(containers: Containers) -> None:
    containers.query("INSERT INTO payment VALUES (1)")
    containers.backup("once")
    containers.query("INSERT INTO payment VALUES (2)")
    point = containers.archive()
    containers.query("INSERT INTO payment VALUES (3)")
    containers.archive()
    containers.stop(signal.SIGQUIT)
    shutil.rmtree(containers.data)

    containers.backup("restore", point.isoformat(sep=" "))
    containers.start()
    assert containers.query("SELECT array_agg(id ORDER BY id) FROM payment") == [1, 2]

    containers.query("INSERT INTO payment VALUES (4)")
    containers.backup("once")
    containers.query("INSERT INTO payment VALUES (5)")
    containers.archive()
    containers.stop(signal.SIGQUIT)
    containers.backup("restore")
    containers.start()
    assert containers.query("SELECT array_agg(id ORDER BY id) FROM payment") == [1, 2, 4, 5]
    assert len(list(containers.folder.glob("data.*"))) == 1, "what was there is kept"


def test_old_backups_and_their_wal_go(containers: Containers) -> None:
    first = containers.backups / "base" / "20200101T000000Z"
    containers.backup("once")
    (made,) = (containers.backups / "base").iterdir()
    made.rename(first)
    wal = {path.name for path in (containers.backups / "wal").iterdir()}
    for day in range(2, 8):
        containers.query("INSERT INTO payment VALUES (1)")
        containers.archive()
        containers.backup("once")
        (made,) = (containers.backups / "base").glob("2026*")
        made.rename(made.with_name(f"2020010{day}T000000Z"))
    assert first.exists()
    containers.backup("once")
    kept = sorted((containers.backups / "base").iterdir())
    assert (len(kept), first.exists()) == (7, False)
    assert not wal & {path.name for path in (containers.backups / "wal").iterdir() if path.suffix == ""}


def test_log_that_differs_from_what_is_stored_is_refused(containers: Containers, tmp_path: Path) -> None:
    stored = containers.folder / "part-of-the-log"
    stored.write_text("one")
    containers.backup("archive", str(stored), "0001")
    containers.backup("archive", str(stored), "0001")
    stored.write_text("two")
    with pytest.raises(AssertionError):
        containers.backup("archive", str(stored), "0001")
    assert (containers.backups / "wal" / "0001").read_text() == "one"


def test_time_before_the_first_backup_is_refused_and_changes_nothing(containers: Containers) -> None:
    containers.backup("once")
    with pytest.raises(AssertionError, match="No backup is as old as 2020-01-01"):
        containers.backup("restore", "2020-01-01")
    assert (containers.data / "PG_VERSION").exists()
