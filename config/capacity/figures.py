"""What used the processors during a round, what ended first, and what to add first."""

import os
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import psycopg

from config.capacity.load import Round, p99
from config.capacity.processes import WEB
from config.workers import WORKERS

LOAD, POSTGRES, MACHINE = "shops of this measurement", "PostgreSQL", "processors of this machine"
# A mean above this over seconds is full: work comes in bursts.
FULL, MACHINE_FULL = 0.75, 0.9
# Other programs that take more of the machine spoil the figures.
MOST_OF_OTHERS = 0.15
CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Step(NamedTuple):
    """cores: the mean of each group of processes, and of the machine."""

    at_once: int
    round: Round
    cores: Mapping[str, float]


class Resource(NamedTuple):
    """busy: 0 to 1. add: what to do if it ends first."""

    name: str
    busy: float
    add: str


class Processors:
    """Processor time by /proc, see proc_pid_stat(5). Each of our processes has a session of its own."""

    def __init__(self, database_url: str, pids: Mapping[str, int]) -> None:
        self._names, self._postgres = {pid: name for name, pid in pids.items()}, 0
        with suppress(OSError), psycopg.connect(database_url) as connection:
            stat = Path(f"/proc/{connection.info.backend_pid}/stat").read_text()
            if "(postgres" in stat:  # it runs on this machine
                self._postgres = int(stat.rpartition(") ")[2].split()[1])

    @contextmanager
    def watching(self) -> Iterator[dict[str, float]]:
        """What the block gets has the cores when it ends."""
        cores: dict[str, float] = {}
        before, began = self._seconds(), time.perf_counter()
        yield cores
        passed = time.perf_counter() - began
        cores |= {name: (used - before[name]) / passed for name, used in self._seconds().items()}

    def _seconds(self) -> "defaultdict[str, float]":
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


def resources(cores: Mapping[str, float], web_workers: int) -> list[Resource]:
    """The busiest first."""
    web = min(web_workers, CORES)
    add_web = f"Set WEB_WORKERS={CORES}." if web < CORES else "Add a machine with web behind the same proxy."
    add_load = "The service holds more: the measurement itself was too slow. Read the figures as at least."
    found = [
        Resource(MACHINE, cores[MACHINE] / CORES, _for_the_machine(cores)),
        Resource(WEB, cores[WEB] / web, add_web),
        Resource(POSTGRES, cores.get(POSTGRES, 0.0) / CORES, "Give PostgreSQL more or faster cores."),
        Resource(LOAD, cores[LOAD], add_load),
    ]
    for name in WORKERS:
        add = f"Start a second worker of this kind: thaiqr-server worker --queues {name} --name {name}2"
        found.append(Resource(f"worker of {name}", cores.get(name, 0.0), add))
    return sorted(found, key=lambda each: -each.busy)


def ends_first(found: list[Resource]) -> Resource | None:
    """None if nothing was full. A process on all of its core is first only if another core is free."""
    machine = next(each for each in found if each.name == MACHINE)
    full = (each for each in found if each.busy >= FULL and each is not machine)
    return machine if machine.busy >= MACHINE_FULL else next(full, None)


def _for_the_machine(cores: Mapping[str, float]) -> str:
    """Move the group that takes most of the processors."""
    ours = {name: used for name, used in cores.items() if name != MACHINE}
    others = cores[MACHINE] - sum(ours.values())
    if others > MOST_OF_OTHERS * CORES:
        return f"Measure again without the other programs, which took {others:.1f} cores."
    largest = max(ours.keys() - {LOAD}, key=lambda name: ours[name])
    return f"More cores, or another machine for {largest}, which took {ours[largest]:.1f} of {CORES} cores."


def report(steps: list[Step], *, web_workers: int, commit_ms: float, bytes_each: float) -> str:
    """The best step has the most whole lives a second. bytes_each: what one life leaves in the database."""
    best = max(steps, key=lambda step: step.round.rate)
    found, rate = resources(best.cores, web_workers), best.round.rate
    first = ends_first(found)
    nothing_full = (
        "Requests waited for each other (raise WEB_THREADS or WEB_WORKERS), or for the disk of PostgreSQL:\n"
        f"a commit took {commit_ms:.1f} ms; NVMe with protection against power loss takes 0.1 ms."
    )
    gigabytes = 86_400 * rate * bytes_each / 1e9
    lines = [
        f"{CORES} cores, {web_workers} web processes; a commit takes {commit_ms:.2f} ms.\n",
        "  payments at once   whole lives a second   99 of 100 requests   99 of 100 webhooks",
    ]
    for at_once, each, _ in steps:
        latencies = f"{p99(each.requests):>15,.0f} ms   {p99(each.webhooks):>15,.0f} ms"
        lines.append(f"  {at_once:>16}   {each.rate:>20,.0f}   {latencies}")
    lines += [
        f"\nBest: {rate:,.0f} whole lives a second (code, payment, webhook, poll), {best.at_once} at once.",
        f"At this rate a day takes {gigabytes:,.1f} GB of disk: {bytes_each / 1000:.1f} kB for a payment.",
        "Busy: " + ", ".join(f"{each.name} {each.busy:.0%}" for each in found) + ".\n",
        f"Ends first: {first.name}, {first.busy:.0%} busy." if first else "Ends first: nothing.",
        f"Add first: {first.add if first else nothing_full}",
        f"Plan for {rate / 2:,.0f} whole lives a second at the busiest minute: a release, a lost process and",
        "staff need the other half.",
    ]
    return "\n".join(lines) + "\n"
