"""PostgreSQL's programs of the system, for tests with tools that are installed beside them."""

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import pytest

from config.devstack.postgres_programs import MIN_MAJOR, major_version
from config.devstack.programs import Account

DEBIAN = Path("/usr/lib/postgresql")


def programs() -> Path:
    """The folder of the programs. Skips without them."""
    found = sorted(DEBIAN.glob("*/bin/postgres"))
    if not found or major_version(found[-1].parent) < MIN_MAJOR:
        pytest.skip("PostgreSQL 15 of the system is not installed (on Debian: apt install postgresql-15)")
    return found[-1].parent


def processes_of(postmaster: int) -> list[int]:
    """A server and the processes that it started."""
    children = Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text().split()
    return [postmaster, *map(int, children)]


def send(number: int, pids: Iterable[int]) -> None:
    """Send a signal to each process. Leave out one that has ended: a session may end at any time."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def account() -> Account | None:
    """Whom PostgreSQL runs as: it refuses root."""
    return Account.nobody() if os.geteuid() == 0 else None
