"""What a unit of work costs: processor time of processes, and what PostgreSQL did in the same time.

Rows and index entries are counted in the write-ahead log. The statistics of PostgreSQL come seconds late, and
count no index entries.
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import psutil
import psycopg
from psycopg.rows import dict_row

from bench.stack import DetachedStack
from config.capacity.figures import LOAD, POSTGRES, Processors

# The columns about the database.
DATABASE = (
    "postgres us", "background %", "WAL bytes", "full pages", "rows", "index entries", "statements", "growth",
)  # fmt: skip
PREPARE = (
    "ALTER SYSTEM SET shared_preload_libraries = 'pg_stat_statements'",
    "ALTER SYSTEM SET wal_keep_size = '1GB'",  # a checkpoint removes nothing of a round
    "CREATE EXTENSION pg_stat_statements",
    "CREATE EXTENSION pg_walinspect",
)
COUNTERS = """
SELECT pg_current_wal_insert_lsn()::text AS position, sum(pg_database_size(oid))::float8 AS growth, (
    SELECT sum(calls)::float8 FROM pg_stat_statements WHERE toplevel AND query NOT IN ('BEGIN', 'COMMIT')
) AS statements FROM pg_database
"""
# COPY writes many rows with one record. A page of an index that splits gets an entry, too.
WRITTEN = """
SELECT (%(end)s::pg_lsn - %(begin)s::pg_lsn)::float8 AS "WAL bytes", sum(fpi_length)::float8 AS "full pages",
    sum(CASE WHEN record_type LIKE 'MULTI%%' THEN substring(description FROM '[0-9]+')::float8 ELSE 1 END)
        FILTER (WHERE resource_manager LIKE 'Heap%%' AND record_type ~ '^(MULTI_|HOT_)?(INSERT|UPDATE|DELETE)')
        AS "rows",
    count(*) FILTER (WHERE resource_manager = 'Btree' AND record_type ~ '^(INSERT_LEAF|INSERT_POST|SPLIT)')
        AS "index entries"
FROM pg_get_wal_records_info(%(begin)s, %(end)s)
"""  # noqa: E501
Connection = psycopg.Connection[dict[str, Any]]


def connect(owner_url: str) -> Connection:
    """In a database of its own, so that the service has only its own tables."""
    return psycopg.connect(owner_url, dbname="postgres", autocommit=True, row_factory=dict_row)


def prepare(stack: DetachedStack) -> None:
    """Let PostgreSQL count statements and show its write-ahead log. Restarts the instance."""
    with connect(stack.owner_url) as connection:
        for statement in PREPARE:
            connection.execute(statement)
    stack.stop()
    stack.start()


def written(connection: Connection, begin: str, end: str) -> dict[str, float]:
    """What the write-ahead log has between two positions."""
    return connection.execute(WRITTEN, {"begin": begin, "end": end}).fetchone() or {}


class Cost:
    """Counts from its making to `each`. working: the processes that do the work, with their names."""

    def __init__(self, stack: DetachedStack, working: Mapping[int, str]) -> None:
        groups = {**dict.fromkeys(stack.pids.values(), "others"), **working}
        self._working, self._processors = working, Processors(stack.owner_url, groups)
        self._connection = connect(stack.owner_url)
        self._names = [*working.values(), "others", "client", "postgres"]
        self._began, self._sessions = self._counters(), self._session_seconds()
        self._used = self._processors.seconds()

    def each(self, count: float) -> dict[str, float]:
        """The figures of one unit of work, of `count`."""
        used = {name: seconds - self._used[name] for name, seconds in self._processors.seconds().items()}
        own = sum(spent - self._sessions.get(pid, 0.0) for pid, spent in self._session_seconds().items())
        ended = self._counters()
        with self._connection as connection:
            found = written(connection, self._began.pop("position"), ended.pop("position"))
        found |= {name: value - self._began[name] for name, value in ended.items()}
        used |= {"client": used[LOAD], "postgres": used[POSTGRES]}
        found |= {f"{name} us": 1e6 * used[name] for name in self._names}
        share = {"background %": 100 * (1 - own / used["postgres"])} if own else {}
        return {name: (value or 0.0) / count for name, value in found.items()} | share

    def _counters(self) -> dict[str, Any]:
        return self._connection.execute(COUNTERS).fetchone() or {}

    def _session_seconds(self) -> dict[int, float]:
        """Of the sessions in PostgreSQL of the processes that work, by the process of the session."""
        roots = [psutil.Process(pid) for pid in self._working]
        family = [each for root in roots for each in (root, *root.children(recursive=True))]
        ports = list[int]()
        for each in family:
            with suppress(psutil.NoSuchProcess):
                ports += [found.laddr.port for found in each.net_connections("tcp")]
        statement = "SELECT pid FROM pg_stat_activity WHERE client_port = ANY(%s)"
        seconds = dict[int, float]()
        for row in self._connection.execute(statement, [ports]):
            with suppress(psutil.NoSuchProcess):  # a session may have ended
                seconds[row["pid"]] = sum(psutil.Process(row["pid"]).cpu_times()[:2])
        return seconds
