"""Looks, during a measurement, at what the processes of this machine and the sessions of PostgreSQL do."""

import os
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg

from config.capacity import processors
from config.checks import is_local

TICK_SECONDS = 0.1
# Reading /proc takes some milliseconds of the process that makes the load.
TICKS_PER_PROCESSOR_SAMPLE = 5
LOAD, POSTGRES = "load", "postgres"
ON_PROCESSOR, LOG, LOCKS, OTHER = "processor", "log", "locks", "other"
# A session that writes or waits for the write-ahead log waits for the disk.
_SESSIONS_SQL = """
SELECT CASE WHEN wait_event IS NULL THEN 'processor'
            WHEN lower(wait_event) IN ('walsync', 'walwrite') THEN 'log'
            WHEN wait_event_type IN ('Lock', 'LWLock') THEN 'locks' ELSE 'other' END, count(*)
FROM pg_stat_activity
WHERE datname = current_database() AND state = 'active' AND pid <> pg_backend_pid() GROUP BY 1
"""


@dataclass(frozen=True)
class ProcessorSample:
    """Cores in use since the sample before it, by group of processes, and of the whole machine."""

    at: float
    cores: Mapping[str, float]
    machine: float

    @property
    def of_others(self) -> float:
        """The cores that other programs of this machine used."""
        return max(0.0, self.machine - sum(self.cores.values()))


@dataclass
class Samples:
    """Instants are of `time.perf_counter`."""

    processors: list[ProcessorSample] = field(default_factory=list)
    sessions: list[tuple[float, Counter[str]]] = field(default_factory=list)

    def between(self, begin: float, end: float) -> "Samples":
        return Samples(
            [each for each in self.processors if begin <= each.at <= end],
            [each for each in self.sessions if begin <= each[0] <= end],
        )

    def cores(self, group: str) -> float:
        """The mean of the cores that a group used."""
        return _mean([each.cores.get(group, 0.0) for each in self.processors])

    @property
    def machine(self) -> float:
        """The mean of all cores in use on this machine, also by others."""
        return _mean([each.machine for each in self.processors])

    @property
    def of_others(self) -> float:
        return _mean([each.of_others for each in self.processors])

    def mean_sessions(self, state: str) -> float:
        return _mean([counts[state] for _, counts in self.sessions])

    @property
    def share_of_log(self) -> float:
        """How often some session waited for the write-ahead log."""
        return _mean([float(counts[LOG] > 0) for _, counts in self.sessions])


class Sampler:
    """A thread that takes samples until it is stopped. Use it as a context."""

    def __init__(self, database_url: str, pids: Mapping[str, int]) -> None:
        """database_url: of web and workers, whose sessions their role may see."""
        self.samples = Samples()
        self._connection = psycopg.connect(database_url, autocommit=True)
        self.postgres_pid = local_server_pid(self._connection)
        own = {POSTGRES: self.postgres_pid} if self.postgres_pid else {}
        self._pids = {**pids, **own, LOAD: os.getpid()}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sampler", daemon=True)

    def __enter__(self) -> "Sampler":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self._connection.close()

    def _run(self) -> None:
        before, at, machine = self._used(), time.perf_counter(), machine_seconds()
        ticks = 0
        while not self._stop.wait(TICK_SECONDS):
            self._look_at_sessions()
            ticks += 1
            if ticks % TICKS_PER_PROCESSOR_SAMPLE == 0:
                now, used, machine_now = time.perf_counter(), self._used(), machine_seconds()
                cores = {name: (used[name] - before[name]) / (now - at) for name in used}
                of_machine = (machine_now - machine) / (now - at)
                self.samples.processors.append(ProcessorSample(now, cores, of_machine))
                before, at, machine = used, now, machine_now

    def _used(self) -> dict[str, float]:
        """This process alone is the load; its children have groups of their own."""
        used = processors.seconds_of_families(self._pids)
        if used:
            used[LOAD] = time.process_time()
        return used

    def _look_at_sessions(self) -> None:
        found: Counter[str] = Counter(dict(self._connection.execute(_SESSIONS_SQL).fetchall()))
        self.samples.sessions.append((time.perf_counter(), found))


def local_server_pid(connection: "psycopg.Connection[Any]") -> int | None:
    """The first process of the server if it runs on this machine, where its processes can be seen."""
    if not is_local(connection.info.host):
        return None
    try:
        parent, name = processors.parent_of(connection.info.backend_pid)
    except OSError:
        return None
    return parent if name.startswith("postgres") else None


def machine_seconds() -> float:
    """Processor seconds of all processes of this machine so far; see proc_stat(5). 0 without /proc."""
    try:
        first = Path("/proc/stat").read_text().partition("\n")[0]
    except OSError:
        return 0.0
    user, nice, system, _idle, _iowait, *others = map(int, first.split()[1:9])
    return (user + nice + system + sum(others)) / processors.TICKS_PER_SECOND


def core_count() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0
