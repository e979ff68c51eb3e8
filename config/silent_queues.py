"""A worker runs the tasks of its queues by itself when none of them has arrived for long.

The broker may be away, or beat. Work goes on then, only later: what is due is in the database, and each task
may run twice at once without harm.
"""

import logging
import threading
import time
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor

from celery import Celery
from django.db import DatabaseError, close_old_connections, connections

from core import clock
from operations.nightly import heartbeats

log = logging.getLogger("silent_queues")
# The heartbeats of the queues are looked at as often, in seconds.
LOOK_EVERY = 5.0
TICK_SECONDS = 1.0


class SilentQueues(threading.Thread):
    """Looks at the heartbeats of the queues of this worker, and stands in for beat and the broker."""

    def __init__(self, app: Celery) -> None:
        super().__init__(name="silent queues", daemon=True)
        self.app = app
        self._stopping = threading.Event()
        self._due_at: dict[str, float] = {}
        self._runs: dict[str, Future[None]] = {}

    def stop(self) -> None:
        self._stopping.set()

    def run(self) -> None:
        # A worker that starts has not had the time for a heartbeat.
        self._stopping.wait(heartbeats.SILENT_AFTER.total_seconds())
        # A thread for each task, so that one that waits for a bank or a merchant delays no other.
        threads = len(self.app.conf.beat_schedule)
        with ThreadPoolExecutor(threads, thread_name_prefix="silent queues") as pool:
            while not self._stopping.is_set():
                close_old_connections()
                queues = self._silent()
                if queues:
                    self._run_due(pool, queues)
                self._stopping.wait(TICK_SECONDS if queues else LOOK_EVERY)

    def _silent(self) -> set[str]:
        """The queues of this worker without a heartbeat; no queue if the database does not answer."""
        served = self.app.amqp.queues.consume_from.keys()
        try:
            silent = heartbeats.silent(now=clock.now())
        except DatabaseError:
            return set()
        return {queue for queue in served if silent.get(queue)}

    def _run_due(self, pool: ThreadPoolExecutor, queues: Iterable[str]) -> None:
        """Begin each task of the queues that is due and not under way."""
        now = time.monotonic()
        for entry in self.app.conf.beat_schedule.values():
            task = entry["task"]
            # The heartbeat must keep telling that the queue is silent.
            if entry["options"]["queue"] not in queues or task.startswith(heartbeats.TASK):
                continue
            if now < self._due_at.get(task, 0) or (task in self._runs and not self._runs[task].done()):
                continue
            self._due_at[task] = now + entry["schedule"]
            self._runs[task] = pool.submit(self._run_task, task)

    def _run_task(self, name: str) -> None:
        try:
            self.app.tasks[name].apply(throw=True)
        except Exception as error:
            log.warning("%s failed: %s", name, type(error).__name__)
        finally:
            connections.close_all()
