"""How many database connections the processes of a deployment open at most. See docs/settings.md."""

from collections.abc import Iterable

from config import concurrency
from config.celery import BEAT_SCHEDULE
from config.workers import WORKERS, Worker
from operations.nightly import heartbeats

# Besides the threads that answer: the writers of the request log and of measurements, and the checks of both
# kinds of uploads.
MORE_IN_A_WEB_PROCESS = 4
# Besides the threads of tasks: the main thread, one that records deliveries or helps to expire payments, and
# those that look for silent queues and write measurements.
MORE_IN_A_WORKER = 4
# Its own, and the writer of measurements.
BEAT = 2
# `migrate`, `audit`, a person with psql.
COMMANDS = 5


def of_web(processes: int, threads: int, card_concurrency: int) -> int:
    return processes * (threads + concurrency.THREADS_PER_CALL * card_concurrency + MORE_IN_A_WEB_PROCESS)


def of_worker(worker: Worker) -> int:
    """One worker process. While Redis or beat is away, each task of its queues has a thread more."""
    tasks = [task for _, task, _, queue in BEAT_SCHEDULE if queue in worker.queues]
    return worker.threads + MORE_IN_A_WORKER + sum(not task.startswith(heartbeats.TASK) for task in tasks)


def of_deployment(web: int, workers: Iterable[Worker] = tuple(WORKERS.values())) -> int:
    """All processes. `web`: the connections of all web servers together."""
    return web + sum(map(of_worker, workers)) + BEAT + COMMANDS
