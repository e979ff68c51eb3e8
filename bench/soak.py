"""A soak run: whole lives at a third of the measured maximum, for minutes, at fixed instants.

It shows whether latencies and memory stay as they are, and what each payment leaves in the database.
"""

import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import psycopg

from bench import footprint
from bench.life import SENDER, WEB, LifeBenchmark
from bench.lives import LivesResult, joined
from tests.stack import Stack

WARM_UP_SECONDS, MOST_SECONDS = 3.0, 15.0
SHARE = 1 / 3
# A shorter run has one shorter part.
MINUTE = 60.0
TOP_TABLES = 10
# Pages that PostgreSQL shares between sessions: a cache, which fills up to its fixed size.
SHARED, OTHERS = "buffers", "others"
PAGE_BYTES = 8192
WAL = "SELECT pg_current_wal_insert_lsn() - '0/0', (SELECT wal_fpi FROM pg_stat_wal)"
TABLES = """
SELECT relname, pg_table_size(relid), pg_indexes_size(relid), n_dead_tup FROM pg_stat_user_tables
"""


@dataclass(frozen=True)
class Minute:
    """The lives that began in it, and at its end the memory in megabytes by group of processes."""

    result: LivesResult
    memory: dict[str, float]


@dataclass(frozen=True)
class TableGrowth:
    """Bytes a payment; dead rows are those at the end."""

    name: str
    row_bytes: float
    index_bytes: float
    dead_rows: int

    @property
    def all_bytes(self) -> float:
        return self.row_bytes + self.index_bytes


@dataclass(frozen=True)
class Growth:
    """What each payment leaves: bytes of the log and of each table.

    full_page_bytes: the part of the log that is whole pages, at most. The first change of a page after a
    checkpoint logs the whole page.
    """

    wal_bytes: float
    full_page_bytes: float
    tables: Sequence[TableGrowth]

    @property
    def largest(self) -> Sequence[TableGrowth]:
        return sorted(self.tables, key=lambda table: table.all_bytes, reverse=True)[:TOP_TABLES]


@dataclass(frozen=True)
class Soak:
    """most: whole lives a second that the service reached. rate: those of the soak run."""

    most: float
    rate: float
    minutes: Sequence[Minute]
    growth: Growth

    @property
    def whole(self) -> Minute:
        """All minutes as one, with the memory of the last."""
        return Minute(joined([minute.result for minute in self.minutes]), self.minutes[-1].memory)

    def megabytes_per_hour(self, group: str) -> float:
        return (
            slope([minute.memory[group] for minute in self.minutes]) * 3600 / self.minutes[0].result.seconds
        )


def slope(values: Sequence[float]) -> float:
    """The growth from one value to the next, by linear regression without the first one, the warm-up."""
    used = values[1:]
    return statistics.linear_regression(range(len(used)), used).slope if len(used) > 1 else 0.0


def measure(benchmark: LifeBenchmark, seconds: float, at_once: int, report: Callable[[Minute], None]) -> Soak:
    """Run for `seconds`; `report` gets each minute when it ends. Raises NotMeasurable."""
    lives, stack, minutes = benchmark.lives, benchmark.stack, list[Minute]()
    lives.closed_loop(seconds=WARM_UP_SECONDS, at_once=at_once)
    most = lives.closed_loop(seconds=MOST_SECONDS, at_once=at_once).rate
    parts = max(1, round(seconds / MINUTE))

    def end_minute(result: LivesResult) -> None:
        minutes.append(Minute(result, memory(stack)))
        report(minutes[-1])

    before = _snapshot(stack)
    lives.open_loop(parts=parts, seconds=seconds / parts, rate=SHARE * most, report=end_minute)
    after = _snapshot(stack)
    benchmark.check()
    payments = sum(minute.result.count for minute in minutes)
    return Soak(most, SHARE * most, minutes, growth(before, after, payments))


def memory(stack: Stack) -> dict[str, float]:
    """Megabytes (Pss) by group of processes. PostgreSQL's shared buffers are a group of their own."""
    pids = stack.pids
    sizes = {name: footprint.family_memory(pid) for name, pid in pids.items()}
    shared = footprint.family_memory(pids["postgres"], "Pss_Shmem")
    sizes["postgres"] -= shared
    shown = {name: sizes.pop(name) for name in (WEB, SENDER, "postgres")}
    return {**shown, SHARED: shared, OTHERS: sum(sizes.values())}


@dataclass(frozen=True)
class Snapshot:
    """Bytes and whole pages of the log so far; by table the bytes of rows and of indexes, and dead rows."""

    wal_bytes: int
    full_pages: int
    tables: dict[str, tuple[int, int, int]]


def _snapshot(stack: Stack) -> Snapshot:
    with psycopg.connect(stack.owner_url) as connection:
        wal_bytes, full_pages = connection.execute(WAL).fetchone() or (0, 0)
        found = {name: (rows, indexes, dead) for name, rows, indexes, dead in connection.execute(TABLES)}
    return Snapshot(int(wal_bytes), int(full_pages), found)


def growth(before: Snapshot, after: Snapshot, payments: int) -> Growth:
    """The differences for each payment."""

    def tables() -> Iterator[TableGrowth]:
        for name, (rows, indexes, dead) in after.tables.items():
            old_rows, old_indexes, _ = before.tables[name]
            yield TableGrowth(name, (rows - old_rows) / payments, (indexes - old_indexes) / payments, dead)

    return Growth(
        (after.wal_bytes - before.wal_bytes) / payments,
        PAGE_BYTES * (after.full_pages - before.full_pages) / payments,
        list(tables()),
    )
