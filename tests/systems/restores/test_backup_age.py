"""The age of the newest base backup, as PostgreSQL itself knows it."""

import os
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import psycopg
import pytest

from core.database import archiver
from tests.backups import BackedUpServer
from tests.memory import server_folder
from tests.stack import ROOT

pytestmark = pytest.mark.slow
GRANT = "GRANT EXECUTE ON FUNCTION pg_ls_waldir() TO thaiqr_app"


@pytest.fixture
def server() -> Iterator[BackedUpServer]:
    with server_folder("thai-qr-age-") as folder:
        made = BackedUpServer(folder)
        made.create()
        yield made
        made.stop()


def test_age_of_the_newest_backup_is_known_to_a_role_with_the_right(server: BackedUpServer) -> None:
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute("CREATE ROLE thaiqr_app NOLOGIN")
        connection.execute("SET ROLE thaiqr_app")
        assert connection.execute(archiver.MAY_LIST_WAL).fetchone() == (False,)
        connection.execute("RESET ROLE")
        assert GRANT in (ROOT / "docs" / "restore.md").read_text()
        connection.execute(GRANT)
        connection.execute("SET ROLE thaiqr_app")
        assert connection.execute(archiver.MAY_LIST_WAL).fetchone() == (True,)
        assert 0 <= age(connection) < 3_600, "since the start of the server"
        server.pgbackrest("--type=full", "backup")
        make_older(server.data, timedelta(hours=30))
        assert age(connection) >= timedelta(hours=30).total_seconds()
        server.pgbackrest("--type=incr", "backup")
        assert 0 <= age(connection) < 3_600
        make_older(server.data, timedelta(hours=30))
        point = server.archive()
        connection.execute("RESET ROLE")
        connection.execute("CREATE TABLE later ()")
        server.archive()
    server.lose()
    server.restore(to=point)
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute("SET ROLE thaiqr_app")
        assert 0 <= age(connection) < 3_600, "since the restore"


def age(connection: "psycopg.Connection[tuple[float, ...]]") -> float:
    (seconds,) = connection.execute(archiver.BASE_BACKUP_AGE).fetchone() or (-1.0,)
    return seconds


def make_older(data: Path, by: timedelta) -> None:
    """Date the newest backup back."""
    for path in (data / "pg_wal").glob("*.backup"):
        at = path.stat().st_mtime - by.total_seconds()
        os.utime(path, (at, at))
