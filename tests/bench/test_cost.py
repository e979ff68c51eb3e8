"""What the write-ahead log says of rows and index entries."""

import secrets
import signal
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from bench import cost
from config.devstack import ports
from config.devstack.postgres import Cluster
from tests.stack import wait_until

pytestmark = pytest.mark.slow
START_SECONDS = 120


@pytest.fixture(scope="module")
def connection() -> Iterator[cost.Connection]:
    """A PostgreSQL in which nobody else writes."""
    with TemporaryDirectory(prefix="cost-") as folder:
        Path(folder).chmod(0o711)  # PostgreSQL does not run as root
        cluster = Cluster(Path(folder), ports.pick(), secrets.token_hex(), ("-c", "autovacuum=off"))
        server = cluster.prepare().spawn()
        try:
            wait_until(cluster.is_ready, START_SECONDS)
            with cost.connect(cluster.url) as connected:
                connected.execute("CREATE EXTENSION pg_walinspect")
                connected.execute("CREATE TABLE paid (id integer PRIMARY KEY, at integer, note text)")
                connected.execute("CREATE INDEX ON paid (at)")
                yield connected
        finally:
            server.send_signal(signal.SIGINT)
            server.wait()
            if server.stdout:
                server.stdout.close()


def written_by(connection: cost.Connection, *statements: str) -> tuple[float, float]:
    """Rows and index entries."""
    begin = position(connection)
    for statement in statements:
        connection.execute(statement.encode())
    found = cost.written(connection, begin, position(connection))
    assert found["WAL bytes"] > found["full pages"] >= 0
    return found["rows"], found["index entries"]


def position(connection: cost.Connection) -> str:
    return str(connection.execute("SELECT pg_current_wal_insert_lsn() AS at").fetchone()["at"])  # type: ignore[index]


def test_each_row_has_an_entry_in_each_index(connection: cost.Connection) -> None:
    inserts = [f"INSERT INTO paid VALUES ({number}, 1)" for number in range(100)]
    assert written_by(connection, *inserts) == (100, 200)


def test_entries_of_a_page_that_splits_count(connection: cost.Connection) -> None:
    insert = "INSERT INTO paid SELECT number, number FROM generate_series(1001, 5000) AS number"
    rows, entries = written_by(connection, insert)
    assert rows == 4000
    assert 8000 <= entries <= 8010  # and a few of inner pages that split


def test_update_writes_entries_only_if_an_indexed_column_changes(connection: cost.Connection) -> None:
    connection.execute("VACUUM FULL paid")
    connection.execute("INSERT INTO paid VALUES (-1, 1)")
    assert written_by(connection, "UPDATE paid SET note = 'paid' WHERE id = -1") == (1, 0)
    assert written_by(connection, "UPDATE paid SET at = 2 WHERE id = -1") == (1, 2)
    assert written_by(connection, "DELETE FROM paid WHERE id = -1") == (1, 0)


def test_rows_that_copy_writes_together_count_each(connection: cost.Connection) -> None:
    connection.execute("CREATE TABLE asked (id integer)")
    begin = position(connection)
    with connection.cursor() as cursor, cursor.copy("COPY asked FROM STDIN") as copy:
        for number in range(50):
            copy.write_row([number])
    assert cost.written(connection, begin, position(connection))["rows"] == 50
