"""Pytest plugin: a private PostgreSQL and Valkey for the run, unless DATABASE_URL is given.

Load it with `-p tests.servers`, because it must run before pytest-django reads the settings. A separate
process keeps the servers. It ends when the run ends, in any way, and removes their data.
"""

import json
import os
import secrets
import select
import subprocess
import sys
from collections.abc import Generator
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from config.devstack import ports
from config.devstack.postgres import Cluster
from config.devstack.programs import Program
from config.devstack.supervisor import StopRequestedError, Supervisor, print_text
from config.devstack.valkey import Valkey
from core import vault
from tests import database_template
from tests.memory import server_folder

ROOT = Path(__file__).resolve().parent.parent
# The data need not survive a crash, so no commit waits. The service refuses to start with fsync=off.
# Races and instances open many connections. Autovacuum would take a sixth of the time of heavy tests, and its
# locks meet those of tests that change a table.
OPTIONS = [
    *("-c", "autovacuum=off"),
    *("-c", "synchronous_commit=off", "-c", "full_page_writes=off"),
    *("-c", "max_connections=600", "-c", "max_wal_size=4GB"),
]
READY_SECONDS = 120.0
MOST_WORKERS = 8  # their threads share the connections

keepers: "list[subprocess.Popen[str]]" = []


@pytest.hookimpl(wrapper=True)
def pytest_load_initial_conftests() -> Generator[None, None, None]:
    """Set the environment before anything reads the settings: a wrapper runs before other hooks."""
    _keep_bytecode()
    for name, value in _settings().items():
        os.environ.setdefault(name, value)
    if "DATABASE_URL" not in os.environ:
        os.environ.update(_start_keeper())
    _choose_redis_database(os.environ.get("PYTEST_XDIST_WORKER", "gw0"))
    return (yield)


@pytest.hookimpl(tryfirst=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """A worker for each core. Tests by file wait for processes: one more, and twice as many for systems."""
    cores = os.cpu_count() or 1
    if "tests/systems" in config.args:
        return min(2 * cores, MOST_WORKERS)
    return min(cores + int(config.getoption("dist") == "loadfile"), MOST_WORKERS)


def pytest_unconfigure() -> None:
    """End the servers. Only the main process has a keeper; workers of xdist inherit the addresses."""
    for keeper in keepers:
        keeper.communicate()


def _keep_bytecode() -> None:
    """Write bytecode into the virtual environment if it must not be beside the sources.

    A run starts a hundred processes, and compiling takes half of each start.
    """
    if os.environ.pop("PYTHONDONTWRITEBYTECODE", None):
        os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix = str(Path(sys.prefix) / "pycache")
        sys.dont_write_bytecode = False


def _choose_redis_database(worker: str) -> None:
    """Give each worker of xdist its own Redis database, because tests empty it."""
    parts = urlsplit(os.environ["REDIS_URL"])
    os.environ["REDIS_URL"] = parts._replace(path=f"/{worker.removeprefix('gw')}").geturl()


def _start_keeper() -> dict[str, str]:
    keeper = subprocess.Popen(
        [sys.executable, "-m", "tests.servers"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        # Ctrl-C ends the tests first, then the servers.
        start_new_session=True,
    )
    keepers.append(keeper)
    if keeper.stdout is None:
        raise AssertionError("the keeper writes to a pipe")
    response = keeper.stdout.readline()
    if not response:
        pytest.exit("The test servers did not start; see above.", returncode=1)
    addresses: dict[str, str] = json.loads(response)
    return addresses


def _settings() -> dict[str, str]:
    return {
        "DJANGO_SETTINGS_MODULE": "config.settings",
        "BASE_URL": "https://qr.example.test",
        "SECRET_KEY": secrets.token_urlsafe(50),
        "IDEMPOTENCY_KEYS": secrets.token_urlsafe(50),
        "FIELD_ENCRYPTION_KEYS": vault.new_key(),
        "SANDBOX_BANK_SECRET": secrets.token_urlsafe(32),
        # Most tests sign in without a second step, and many move the clock.
        "REQUIRE_TWO_FACTOR": "0",
        "SESSION_IDLE_MINUTES": "480",
        # Its thread would write outside of the transaction of a test.
        "REQUEST_LOG_RETENTION_DAYS": "0",
    }


def keep() -> None:
    """Run the servers until standard input closes, which happens when the test run ends."""
    with server_folder("thai-qr-tests-") as home:
        supervisor = Supervisor(home / "pids.json")
        try:
            print_text(json.dumps(_start(supervisor, home)))
            while not select.select([sys.stdin], [], [], 0)[0]:
                supervisor.run_once()
        except StopRequestedError:
            pass
        finally:
            supervisor.stop()


def _start(supervisor: Supervisor, home: Path) -> dict[str, str]:
    cluster = Cluster(home, ports.pick(), secrets.token_hex(), OPTIONS)
    valkey = Valkey(home, ports.pick(), secrets.token_hex())
    for program in (cluster.prepare(), valkey.prepare()):
        supervisor.keep(_silent(program))
    supervisor.wait_until(cluster.is_ready, READY_SECONDS, "PostgreSQL")
    supervisor.wait_until(valkey.is_ready, READY_SECONDS, "Valkey")
    found = {"DATABASE_URL": cluster.url, "REDIS_URL": valkey.url}
    os.environ.update(found)  # the migrations read the settings
    return {**found, "TEST_TEMPLATE": database_template.create(cluster.url)}


def _silent(program: Program) -> Program:
    """Hide the output of the servers: the first line of ours is read as JSON."""
    return replace(program, is_silent=True)


if __name__ == "__main__":
    keep()
