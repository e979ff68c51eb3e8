"""A PostgreSQL with backups by pgBackRest and the configuration that we ship, to lose and restore it."""

import os
import shlex
import shutil
import signal
import subprocess
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
import pytest

from config.devstack import ports
from tests import system_postgres
from tests.stack import ROOT, wait_until

SHIPPED = ROOT / "deploy" / "pgbackrest"
STANZA = "thaiqr"
PASSWORD = "only-for-this-test"
START_SECONDS = 60.0


def programs() -> Path:
    """PostgreSQL's programs of the system, which pgBackRest of the same system knows. Skips without them."""
    if shutil.which("pgbackrest") is None:
        pytest.skip("pgBackRest is not installed (on Debian: apt install pgbackrest)")
    return system_postgres.programs()


class BackedUpServer:
    """One data directory, its backups, and the server on it. The folder must be reachable for `nobody`."""

    def __init__(self, folder: Path) -> None:
        self.programs, self.folder, self.port = programs(), folder, ports.pick()
        self.data, self.archived = folder / "data", folder / "repository"
        self.account = system_postgres.account()
        self.process: subprocess.Popen[str] | None = None
        self.environ = os.environ | {
            "PGBACKREST_CONFIG": str(folder / "pgbackrest.conf"),
            "PGBACKREST_STANZA": STANZA,
            "PGBACKREST_PG1_PATH": str(self.data),
            "PGBACKREST_PG1_PORT": str(self.port),
            "PGBACKREST_PG1_SOCKET_PATH": str(folder),
            "PGBACKREST_PG1_USER": "app",
            "PGBACKREST_REPO1_PATH": str(self.archived),
            "PGBACKREST_REPO1_CIPHER_PASS": "only-for-this-test",
            "PGBACKREST_SPOOL_PATH": str(folder / "spool"),
            "PGBACKREST_LOG_PATH": str(folder / "log"),
            "PGBACKREST_LOCK_PATH": str(folder / "lock"),
            "PGBACKREST_LOG_LEVEL_CONSOLE": "warn",
        }
        shutil.copy(SHIPPED / "pgbackrest.conf", folder)  # where `nobody` can read it
        for name in ("repository", "spool", "log", "lock"):
            (folder / name).mkdir()

    @property
    def url(self) -> str:
        return f"postgres://app:{PASSWORD}@127.0.0.1:{self.port}/app"

    def create(self) -> None:
        """Create the cluster with the settings that we ship, and the stanza of its backups."""
        (self.folder / "password").write_text(PASSWORD)
        if self.account is not None:
            self.account.own(self.folder)
        options = ["-U", "app", f"--pwfile={self.folder / 'password'}", "--auth-host=scram-sha-256"]
        self._run(self.programs / "initdb", "-D", self.data, *options, "--auth-local=trust", "--no-sync")
        shipped = (SHIPPED / "postgresql.conf").read_text()
        with (self.data / "postgresql.conf").open("a") as file:
            file.write(f"{shipped}\nlog_min_messages = panic\nmax_connections = 200\n")
        self.start()
        with psycopg.connect(self.url, dbname="postgres", autocommit=True) as connection:
            connection.execute("CREATE DATABASE app")
        self.pgbackrest("stanza-create")
        self.pgbackrest("check")

    def start(self) -> None:
        """Start the server, and wait until it takes writes: after a restore it replays WAL first."""
        listen = ["-h", "127.0.0.1", "-p", str(self.port), "-k", str(self.folder)]
        self.process = subprocess.Popen(
            [self.programs / "postgres", "-D", self.data, *listen], env=self.environ, **self._as_account()
        )
        wait_until(self._takes_writes, START_SECONDS)

    def _takes_writes(self) -> bool:
        try:
            with psycopg.connect(self.url, dbname="postgres", connect_timeout=2) as connection:
                return connection.execute("SELECT pg_is_in_recovery()").fetchone() == (False,)
        except psycopg.OperationalError:
            return False

    def pgbackrest(self, *arguments: str) -> None:
        self._run("pgbackrest", *arguments)

    def verify(self) -> "subprocess.CompletedProcess[str]":
        """Verify what is stored, as the unit does after each backup."""
        unit = (SHIPPED / "backup-thaiqr@.service").read_text().replace("\\\n", "")
        (line,) = [line for line in unit.splitlines() if line.startswith("ExecStartPost=")]
        command = shlex.split(line.removeprefix("ExecStartPost=").replace("$$", "$"))
        return self._call(*command)

    def damage(self) -> None:
        """Change one byte of the backups."""
        largest = max(self.archived.glob("backup/*/*/bundle/*"), key=lambda path: path.stat().st_size)
        with largest.open("r+b") as file:
            file.seek(largest.stat().st_size // 2)
            (byte,) = file.read(1)
            file.seek(-1, os.SEEK_CUR)
            file.write(bytes([byte ^ 0xFF]))

    def archive(self) -> datetime:
        """Wait until all WAL so far is archived; return the server's time before that."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            (now, _) = connection.execute("SELECT clock_timestamp(), pg_switch_wal()").fetchone() or (
                None,
                None,
            )
            assert isinstance(now, datetime)
            # pg_stat_archiver names what was archived last, and the mark of a backup comes after newer WAL.
            waiting = "SELECT count(*) FROM pg_ls_archive_statusdir() WHERE name LIKE '%.ready'"
            wait_until(lambda: connection.execute(waiting).fetchone() == (0,), START_SECONDS)
        return now

    def lose(self) -> None:
        """Kill the server and delete its data."""
        assert self.process is not None
        pids = system_postgres.processes_of(self.process.pid)
        system_postgres.send(signal.SIGKILL, pids)
        self.process.wait()
        wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids), START_SECONDS)
        shutil.rmtree(self.data)

    def restore(self, to: datetime) -> float:
        """Restore to a point in time and start; return the seconds until it takes writes."""
        started = time.monotonic()
        self.data.mkdir(mode=0o700)
        if self.account is not None:
            self.account.own(self.data)
        target = to.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f+00")
        self.pgbackrest("--type=time", f"--target={target}", "--target-action=promote", "restore")
        self.start()
        return time.monotonic() - started

    def stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            self.process.wait()

    def _run(self, *command: str | Path) -> None:
        done = self._call(*command)
        assert done.returncode == 0, done.stdout

    def _call(self, *command: str | Path) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            command,
            env=self.environ,
            check=False,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            **self._as_account(),
        )

    def _as_account(self) -> dict[str, Any]:
        if self.account is None:
            return {}
        return {"user": self.account.uid, "group": self.account.gid, "extra_groups": [], "cwd": "/"}
