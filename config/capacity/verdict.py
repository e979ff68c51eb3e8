"""What ended first, and what to add first."""

from collections.abc import Iterator
from dataclasses import dataclass

from config.capacity.measuring import Figures
from config.capacity.processes import WEB
from config.capacity.sampling import LOAD, LOCKS, ON_PROCESSOR, POSTGRES, Samples
from config.workers import WORKERS

# A mean above this over seconds is full: work comes in bursts.
FULL, MACHINE_FULL = 0.75, 0.9
# Other programs that take more of the machine spoil the figures.
MOST_OF_OTHERS = 0.15
WEBHOOKS = "webhooks"
DAY_SECONDS = 86_400
SHARE_TO_PLAN = 0.5


@dataclass(frozen=True)
class Resource:
    """busy: 0 to 1. add: what to do if it ends first."""

    name: str
    busy: float
    add: str


@dataclass(frozen=True)
class Verdict:
    """The resources during the best step, the one that ended first (None if none was full), and advice."""

    resources: list[Resource]
    first: Resource | None
    advice: str


def judge(figures: Figures) -> Verdict:
    resources = sorted(_resources(figures, figures.best.samples), key=lambda each: -each.busy)
    machine = next(each for each in resources if each.name == MACHINE)
    full = [each for each in resources if each.busy >= FULL and each.name != MACHINE]
    # A process that has all of its core does not end first if the machine has no core left for another one.
    first = machine if machine.busy >= MACHINE_FULL else next(iter(full), None)
    return Verdict(resources, first, first.add if first else NOTHING_FULL)


MACHINE = "processors of this machine"
NOTHING_FULL = (
    "Nothing was full. Requests waited for each other: raise WEB_THREADS, or measure with more processes "
    "(WEB_WORKERS)."
)


def _resources(figures: Figures, samples: Samples) -> Iterator[Resource]:
    web_cores = min(figures.web_workers, figures.cores)
    yield Resource(MACHINE, samples.machine / figures.cores, _for_the_machine(figures, samples))
    yield Resource("web", samples.cores(WEB) / web_cores, _for_web(figures))
    for name in WORKERS:
        yield Resource(f"worker of {name}", samples.cores(name), _for_a_worker(name))
    yield Resource(
        "processors of PostgreSQL", _of_postgres(figures, samples), "Give PostgreSQL more or faster cores."
    )
    yield Resource(
        "disk of PostgreSQL (fsync)",
        samples.share_of_log,
        f"A disk that confirms writes faster: a commit took {figures.commit_ms:.1f} ms here. NVMe with "
        "protection against power loss takes 0.1 ms or less.",
    )
    yield Resource(
        "locks in PostgreSQL",
        min(1.0, samples.mean_sessions(LOCKS) / figures.cores),
        "Sessions waited for locks. Fewer processes may do more: lower WEB_WORKERS or WEB_THREADS.",
    )
    yield Resource(
        "the shops of this measurement",
        samples.cores(LOAD),
        "The service holds more: the measurement itself was too slow. Read the figures as at least.",
    )


def _of_postgres(figures: Figures, samples: Samples) -> float:
    """From its processes if they are here, else from its sessions that wait for nothing."""
    used = samples.cores(POSTGRES) if figures.has_local_postgres else samples.mean_sessions(ON_PROCESSOR)
    return min(1.0, used / figures.cores)


def _for_web(figures: Figures) -> str:
    if figures.web_workers < figures.cores:
        return f"Set WEB_WORKERS={figures.cores}: web may use {figures.web_workers} of {figures.cores} cores."
    return "Add a second machine with web behind the same proxy."


def _for_a_worker(name: str) -> str:
    command = f"thaiqr-server worker --queues {name} --name {name}2"
    return f"Start a second worker of this kind: {command}"


def _for_the_machine(figures: Figures, samples: Samples) -> str:
    """Move the group that takes most of the processors."""
    if samples.of_others > MOST_OF_OTHERS * figures.cores:
        return f"Measure again without the other programs, which took {samples.of_others:.1f} cores."
    groups = {name: samples.cores(name) for name in (WEB, POSTGRES, *WORKERS)}
    largest = max(groups, key=lambda name: groups[name])
    taken = f"{groups[largest]:.1f} of {figures.cores} cores"
    if largest == POSTGRES:
        return f"Give PostgreSQL a machine of its own: it took {taken}."
    if largest == WEB:
        return f"More cores (then WEB_WORKERS, one for each), or a second machine with web: it took {taken}."
    return f"More cores, or a second machine with the worker of {largest}: it took {taken}."


def rows_a_day(figures: Figures) -> float:
    """Rows of the database that whole lives at the best rate add in 24 hours."""
    return DAY_SECONDS * figures.best.rate * figures.growth.rows / figures.lives


def bytes_a_day(figures: Figures) -> float:
    return DAY_SECONDS * figures.best.rate * figures.growth.bytes / figures.lives
