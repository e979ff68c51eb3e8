"""A real PgBouncer in front of a database."""

import os
import re
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

from config.devstack import ports
from config.devstack.programs import Account
from tests.stack import wait_until
from tests.system_programs import find_program

START_SECONDS = 60.0


def program() -> str:
    """The path of PgBouncer. Skips the test if it is not installed."""
    return find_program("pgbouncer", "pgbouncer")


def follows_statements() -> bool:
    """Whether this version prepares statements in each of its sessions, and forgets them after a rollback."""
    shown = subprocess.run([program(), "--version"], capture_output=True, text=True, check=True).stdout
    major, minor = re.findall(r"PgBouncer (\d+)\.(\d+)", shown)[0]
    return (int(major), int(minor)) >= (1, 22)


@contextmanager
def in_front_of(database_url: str, folder: Path, **settings: str) -> Iterator[str]:
    """The URL of the same database through PgBouncer in transaction mode. All clients share two sessions."""
    parts, port = urlsplit(database_url), ports.pick()
    assert parts.username and parts.password
    folder.mkdir(parents=True)
    (folder / "users.txt").write_text(f'"{parts.username}" "{parts.password}"\n')
    lines = {
        "listen_addr": "127.0.0.1",
        "listen_port": str(port),
        "unix_socket_dir": "",
        "auth_type": "scram-sha-256",
        "auth_file": str(folder / "users.txt"),
        "pool_mode": "transaction",
        "default_pool_size": "2",
        "max_client_conn": "100",
        "server_login_retry": "1",  # as docs/larger-set-ups.md says
    } | settings
    written = "\n".join(f"{name} = {value}" for name, value in lines.items())
    database = f"[databases]\n* = host={parts.hostname} port={parts.port}\n"
    (folder / "pgbouncer.ini").write_text(f"{database}\n[pgbouncer]\n{written}\n")
    account = Account.nobody() if os.geteuid() == 0 else None  # it refuses to run as root
    if account is not None:
        account.own(folder)
    running = subprocess.Popen(
        [program(), "-q", str(folder / "pgbouncer.ini")],
        user=account.uid if account else None,
        group=account.gid if account else None,
        extra_groups=[] if account else None,
    )
    try:
        wait_until(lambda: _listens(port) or running.poll() is not None, START_SECONDS)
        assert running.poll() is None, "PgBouncer did not start"
        yield parts._replace(netloc=f"{parts.username}:{parts.password}@127.0.0.1:{port}").geturl()
    finally:
        running.terminate()
        running.wait(START_SECONDS)


def _listens(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False
