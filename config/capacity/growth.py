"""What payments leave in the database, and how long one commit waits for the disk."""

import statistics
import time
from dataclasses import dataclass

import psycopg

# PostgreSQL counts rows of a session when it is idle for a second.
COUNTED_SECONDS = 1.5
COMMIT_SECONDS = 1.0
_SIZE_SQL = """
SELECT (SELECT coalesce(sum(n_tup_ins - n_tup_del), 0) FROM pg_stat_user_tables),
       (SELECT sum(pg_total_relation_size(relid)) FROM pg_stat_user_tables)
"""


@dataclass(frozen=True)
class Size:
    """Rows, and bytes of all tables with their indexes."""

    rows: int
    bytes: int

    def since(self, before: "Size") -> "Size":
        return Size(self.rows - before.rows, self.bytes - before.bytes)


def measure(owner_url: str) -> Size:
    time.sleep(COUNTED_SECONDS)
    with psycopg.connect(owner_url) as connection:
        rows, size = connection.execute(_SIZE_SQL).fetchone() or (0, 0)
    return Size(int(rows), int(size))


def commit_milliseconds(owner_url: str) -> float:
    """The median of one commit after the other in one session: mostly one fsync."""
    taken: list[float] = []
    with psycopg.connect(owner_url, autocommit=True) as connection:
        connection.execute("CREATE TABLE capacity_commits (number integer)")
        end = time.perf_counter() + COMMIT_SECONDS
        while (begin := time.perf_counter()) < end:
            connection.execute("INSERT INTO capacity_commits VALUES (1)")
            taken.append(1000 * (time.perf_counter() - begin))
        connection.execute("DROP TABLE capacity_commits")
    return statistics.median(taken)
