"""The kinds of worker processes: the queues that each serves, and with how many threads."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Worker:
    """One process of Celery. Each of its threads may hold a database connection."""

    queues: tuple[str, ...]
    threads: int


# The runs of each queue are limited, so cards, transfers and inquiries need at most 20 threads together.
WORKERS = {
    "webhooks": Worker(("webhooks",), 4),
    "banks": Worker(("cards", "transfers", "inquiries"), 20),
    "default": Worker(("default",), 4),
}
# One process for all of them takes a third of their memory.
ALL = Worker(
    tuple(queue for worker in WORKERS.values() for queue in worker.queues),
    sum(worker.threads for worker in WORKERS.values()),
)
# What a process for one of the queues of "banks" needs.
THREADS_OF_ONE_BANK_QUEUE = 12
# Mingling and gossip between workers are not needed, and cost three seconds at the start.
WORKER_OPTIONS = ("worker", "--without-mingle", "--without-gossip", "--loglevel", "WARNING", "-P", "threads")
BEAT_ARGUMENTS = ("beat", "--loglevel", "WARNING", "--pidfile=")


def worker_for(names: Iterable[str]) -> Worker:
    """The worker for these queues or groups of queues. Raises KeyError for a name that is neither."""
    groups = {name: worker.queues for name, worker in WORKERS.items()}
    groups |= {name: (name,) for name in ALL.queues}
    queues = dict.fromkeys(queue for name in names for queue in groups[name])
    threads = sum(
        THREADS_OF_ONE_BANK_QUEUE if len(served) == 1 < len(group.queues) else group.threads
        for group in WORKERS.values()
        if (served := queues.keys() & set(group.queues))
    )
    return Worker(tuple(queues), threads)


def arguments_for(name: str, worker: Worker) -> list[str]:
    """The arguments of `celery`. `name` is part of the name of the process."""
    return [*WORKER_OPTIONS, "-Q", ",".join(worker.queues), "-c", str(worker.threads), "-n", f"{name}@%h"]
