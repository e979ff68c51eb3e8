"""`thaiqr-server capacity` of an installed service: it measures, touches nothing, and cleans up."""

import os
import secrets
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import psycopg
import pytest

from tests.stack import wait_until
from tests.systems.deployment.installation import Installation

pytestmark = pytest.mark.slow


def rows(url: str) -> tuple[object, ...]:
    """What the service has: its rows, and whether a database of a measurement is left."""
    with psycopg.connect(url) as connection:
        found = connection.execute(
            """SELECT (SELECT count(*) FROM merchants_merchant), (SELECT count(*) FROM payments_payment),
                      (SELECT count(*) FROM transfers_transfer),
                      (SELECT count(*) FROM pg_database WHERE datname = current_database() || '_capacity')"""
        ).fetchone()
    assert found is not None
    return found


@contextmanager
def two_roles() -> Iterator[dict[str, str]]:
    """The settings of a database with the two roles of an installation."""
    mark, password = secrets.token_hex(4), secrets.token_hex(24)
    owner, service = f"owner_{mark}", f"service_{mark}"
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as connection:
        groups = {"thaiqr_app", "thaiqr_reports"}
        found = connection.execute("SELECT rolname FROM pg_roles WHERE rolname = ANY(%s)", [list(groups)])
        for role in groups - {name for (name,) in found}:
            connection.execute(f"CREATE ROLE {role} NOLOGIN")
        connection.execute(f"CREATE ROLE {owner} LOGIN CREATEDB PASSWORD '{password}'")
        connection.execute(f"CREATE ROLE {service} LOGIN PASSWORD '{password}' IN ROLE thaiqr_app")
        connection.execute(f"CREATE DATABASE shop_{mark} OWNER {owner}")
        connection.execute(f"ALTER DATABASE shop_{mark} SET synchronous_commit = on")
        server = urlsplit(os.environ["DATABASE_URL"])
        try:
            yield {
                setting: server._replace(
                    netloc=f"{role}:{password}@{server.hostname}:{server.port}", path=f"/shop_{mark}"
                ).geturl()
                for setting, role in (("DATABASE_URL", service), ("MIGRATION_DATABASE_URL", owner))
            }
        finally:
            for name in (f"shop_{mark}_capacity", f"shop_{mark}"):
                connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
            for role in (owner, service):
                connection.execute(f"DROP ROLE {role}")


def test_figures_and_advice_come_from_the_processes_of_production(installed: Installation) -> None:
    with two_roles() as settings:
        installed.run("manage", "migrate", "--verbosity", "0", is_checked=True, **settings)
        before = rows(settings["DATABASE_URL"])
        done = installed.run("capacity", "--seconds", "5", is_checked=False, **settings)
        assert done.returncode == 0, done.stderr
        assert rows(settings["DATABASE_URL"]) == before
    for expected in ("whole lives a second", "of disk", "Busy: ", "Ends first: ", "Add first: ", "Plan for "):
        assert expected in done.stdout
    assert "whole lives, 16 at once" in done.stderr  # the progress
    assert list(installed.home.iterdir()) == []


def sessions(installed: Installation) -> set[str]:
    """The processes of the measurement that PostgreSQL knows."""
    name = urlsplit(installed.settings["DATABASE_URL"]).path.lstrip("/") + "_capacity"
    with psycopg.connect(os.environ["DATABASE_URL"]) as connection:
        found = connection.execute("SELECT application_name FROM pg_stat_activity WHERE datname = %s", [name])
        return {each for (each,) in found}


@pytest.fixture
def in_background() -> Iterator[None]:
    """A shell lets programs in the background ignore SIGINT, and they inherit it."""
    earlier = signal.signal(signal.SIGINT, signal.SIG_IGN)
    yield
    signal.signal(signal.SIGINT, earlier)


@pytest.mark.usefixtures("in_background")
def test_end_by_a_signal_leaves_no_database_and_no_process(installed: Installation) -> None:
    before = rows(installed.settings["DATABASE_URL"])
    with installed.running("capacity") as process:
        wait_until(lambda: {"web", "webhooks"} <= sessions(installed) or process.poll() is not None, 240)
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 128 + signal.SIGINT
    assert rows(installed.settings["DATABASE_URL"]) == before
    assert not sessions(installed)
