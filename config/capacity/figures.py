"""What used the processors during a round, what ended first, and what to add first."""

import os
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psycopg

from config.capacity.processes import WEB
from config.workers import WORKERS

LOAD, POSTGRES, MACHINE = "shops of this measurement", "PostgreSQL", "processors of this machine"
# A mean above this over seconds is full: work comes in bursts.
FULL, MACHINE_FULL = 0.75, 0.9
ADVICE = {
    POSTGRES: "Give PostgreSQL more or faster cores.",
    LOAD: "The service holds more: the measurement itself was too slow. Read the figures as at least.",
    "nothing": "Requests waited for each other (raise WEB_THREADS or WEB_WORKERS), or for the disk of\n"
    "PostgreSQL: NVMe with protection against power loss takes 0.1 ms for a commit.",
}
# Other programs that take more of the machine spoil the figures.
MOST_OF_OTHERS = 0.15
CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass
class Round:
    """Seconds: of each request, from each code to its webhook, and of the whole round.

    cores: the mean of each group of processes, and of the machine.
    """

    at_once: int
    requests: list[float] = field(default_factory=list)
    webhooks: list[float] = field(default_factory=list)
    seconds: float = 0.0
    cores: dict[str, float] = field(default_factory=dict)

    @property
    def rate(self) -> float:
        """Whole lives a second."""
        return len(self.webhooks) / self.seconds


def p99(seconds: list[float]) -> float:
    """What 99 of 100 took at most, in milliseconds; 0 of nothing."""
    return 1000 * sorted(seconds)[int(0.99 * len(seconds))] if seconds else 0.0


class Processors:
    """Processor time by /proc, see proc_pid_stat(5). names: of the groups of processes, by session."""

    def __init__(self, database_url: str, names: Mapping[int, str]) -> None:
        self._names, self._postgres = names, 0
        with suppress(OSError), psycopg.connect(database_url) as connection:
            stat = Path(f"/proc/{connection.info.backend_pid}/stat").read_text()
            if "(postgres" in stat:  # it runs on this machine
                self._postgres = int(stat.rpartition(") ")[2].split()[1])

    @contextmanager
    def watching(self) -> Iterator[dict[str, float]]:
        """What the block gets has the cores when it ends."""
        cores: dict[str, float] = {}
        before, began = self.seconds(), time.perf_counter()
        yield cores
        passed = time.perf_counter() - began
        cores |= {name: (used - before[name]) / passed for name, used in self.seconds().items()}

    def seconds(self) -> "defaultdict[str, float]":
        """By group, so far, also of processes that have ended."""
        ticks = os.sysconf("SC_CLK_TCK")
        found = defaultdict(float, {LOAD: time.process_time(), WEB: 0.0, MACHINE: 0.0})
        for path in Path("/proc").glob("[0-9]*/stat"):
            with suppress(OSError):
                fields = path.read_text().rpartition(") ")[2].split()
                is_postgres = self._postgres and str(self._postgres) in (fields[1], path.parent.name)
                name = POSTGRES if is_postgres else self._names.get(int(fields[3]))
                if name:
                    found[name] += sum(map(int, fields[11:15])) / ticks
        with suppress(OSError):
            user, nice, system, _idle, _wait, *others = map(int, Path("/proc/stat").read_text().split()[1:9])
            found[MACHINE] = (user + nice + system + sum(others)) / ticks
        return found


def advice(first: str, cores: Mapping[str, float], web: int) -> str:
    """What to add to what ended first. web: processes of it that can work at once."""
    if first == MACHINE:
        others = 2 * cores[MACHINE] - sum(cores.values())
        if others > MOST_OF_OTHERS * CORES:
            return f"Measure again without the other programs, which took {others:.1f} cores."
        used, largest = max((used, name) for name, used in cores.items() if name not in (MACHINE, LOAD))
        return f"More cores, or another machine for {largest}, which took {used:.1f} of {CORES} cores."
    if first == WEB:
        return f"Set WEB_WORKERS={CORES}." if web < CORES else "Add a machine with web behind the same proxy."
    if first in WORKERS:
        return f"Start a second worker of this kind: thaiqr-server worker --queues {first} --name {first}2"
    return ADVICE[first]


def report(rounds: list[Round], *, web_workers: int, commit_ms: float, bytes_each: float) -> str:
    """The best round has the most whole lives a second. bytes_each: what one life leaves in the database."""
    best = max(rounds, key=lambda each: each.rate)
    cores, rate, web = best.cores, best.rate, min(web_workers, CORES)
    shares = {MACHINE: CORES, POSTGRES: CORES, WEB: web, LOAD: 1, **dict.fromkeys(WORKERS, 1)}
    busy = {name: cores.get(name, 0.0) / share for name, share in shares.items()}
    busiest = sorted(busy, key=lambda name: -busy[name])
    # A process on all of its core is first only if another core is free.
    full = (name for name in busiest if busy[name] >= FULL and name != MACHINE)
    first = MACHINE if busy[MACHINE] >= MACHINE_FULL else next(full, "nothing")
    gigabytes = 86_400 * rate * bytes_each / 1e9
    table = "".join(
        f"  {each.at_once:>16}   {each.rate:>20,.0f}   {p99(each.requests):>15,.0f} ms   "
        f"{p99(each.webhooks):>15,.0f} ms\n"
        for each in rounds
    )
    return f"""\
{CORES} cores, {web_workers} web processes; a commit takes {commit_ms:.2f} ms.

  payments at once   whole lives a second   99 of 100 requests   99 of 100 webhooks
{table}
Best: {rate:,.0f} whole lives a second (code, payment, webhook, poll), {best.at_once} at once.
At this rate a day takes {gigabytes:,.1f} GB of disk: {bytes_each / 1000:.1f} kB for a payment.
Busy: {", ".join(f"{name} {busy[name]:.0%}" for name in busiest)}.

Ends first: {first}{f", {busy[first]:.0%} busy" if first in busy else ""}.
Add first: {advice(first, cores, web)}
Plan for {rate / 2:,.0f} whole lives a second at the busiest minute: a release, a lost process and
staff need the other half.
"""
