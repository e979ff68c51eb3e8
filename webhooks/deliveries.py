"""Tell endpoints: claim what is due, post it from many threads, note what came back.

One thread of a process claims and notes, in batches and with the process's only database connection for it;
the others only wait for receivers. So a slow receiver costs a thread, never a connection or a lock.
"""

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from datetime import datetime
from functools import lru_cache
from queue import Empty, SimpleQueue
from uuid import UUID

from django.conf import settings
from django.db import DatabaseError, InterfaceError, OperationalError

from core import clock, origin
from webhooks import client, doorbell, notes, posting
from webhooks.leases import Lane, Lease, Limits, Rounds
from webhooks.notes import Result

log = logging.getLogger("webhooks.deliveries")
CONNECT_SECONDS = 3.0
# So long after a post ended others that end are awaited, to be noted in one commit. A bell is heard at once.
GATHER_SECONDS = 0.005
# A worker that has its hands full tells the others so, at most this often.
SECONDS_BETWEEN_BELLS = 0.5
Now = Callable[[], datetime]


class Dispatcher:
    """The engine of one process. Any number of processes run one each, side by side."""

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="post")
        self._rounds = Rounds()
        self._turn = threading.Lock()
        # What happened meanwhile: a post ended, or somebody rang (None).
        self._news: SimpleQueue[tuple[Lease, Result | None] | None] = SimpleQueue()
        self._flying: dict[UUID, Lease] = {}
        self._unnoted: list[Result] = []
        self._is_stopping = False
        self._next_bell = 0.0

    def drain(self, now: Now) -> int:
        """Deliver until nothing is due or under way; returns the number of posts that were begun.

        While one thread is at it, another that calls this only tells it to look again.
        """
        begun = 0
        self._news.put(None)
        while not self._news.empty() and self._turn.acquire(blocking=False):
            try:
                begun += self._run(now)
            finally:
                self._turn.release()
        return begun

    def stop(self) -> None:
        """Begin no more posts; whoever drains goes on until those under way have ended."""
        self._is_stopping = True
        self._news.put(None)

    def _run(self, now: Now) -> int:
        begun = 0
        while True:
            self._note()
            claimed = self._claim(now())
            for lease in claimed:
                self._begin(lease, now)
            begun += len(claimed)
            if not self._flying and self._news.empty():
                return begun
            self._take_news()

    def _claim(self, now: datetime) -> list[Lease]:
        free = self._threads - len(self._flying)
        if self._is_stopping or free == 0:
            return []
        # A quarter of the threads is left for what is neither slow nor extra, whatever begins to hang. One
        # merchant, with any number of endpoints, gets a third of them, and a quarter of the slow lane.
        limits = Limits(
            posts=free,
            slow=self._left_of(Lane.SLOW, max(1, self._threads // 2)),
            extra=self._left_of(Lane.EXTRA, self._threads // 4),
            of_merchant=max(1, self._threads // 3),
            slow_of_merchant=max(1, self._threads // 8),
            under_way=list(self._flying.values()),
        )
        claimed = self._rounds.claim(now=now, limits=limits)
        if len(claimed) == free and time.monotonic() >= self._next_bell:
            self._next_bell = time.monotonic() + SECONDS_BETWEEN_BELLS
            doorbell.ring()
        return claimed

    def _left_of(self, lane: Lane, most: int) -> int:
        return max(0, most - sum(lease.lane is lane for lease in self._flying.values()))

    def _begin(self, lease: Lease, now: Now) -> None:
        self._flying[lease.lease_id] = lease
        try:
            # With the origin of the task that begins it.
            self._pool.submit(copy_context().run, self._post, lease, now)
        except RuntimeError:  # no thread is to be had: its lease will run out
            del self._flying[lease.lease_id]
            raise

    def _post(self, lease: Lease, now: Now) -> None:
        result = None
        try:
            result = _post(lease, now)
        except Exception as error:
            # Its lease will run out, which is written down; the others must not suffer.
            log.error("delivery %s failed by a fault of ours: %s", lease.delivery_id, type(error).__name__)
        finally:
            self._news.put((lease, result))

    def _take_news(self) -> None:
        """Wait for news; after a post that ended also a moment for others."""
        news, until = self._news.get(), time.monotonic() + GATHER_SECONDS
        with suppress(Empty):
            while news is not None:
                self._landed(*news)
                left = until - time.monotonic() if self._flying else 0
                news = self._news.get(block=left > 0, timeout=max(left, 0.001))

    def _landed(self, lease: Lease, result: Result | None) -> None:
        self._flying.pop(lease.lease_id, None)
        if result is not None:
            self._unnoted.append(result)

    def _note(self) -> None:
        results, self._unnoted = self._unnoted, []
        if results:
            try:
                notes.note(results)
            except (OperationalError, InterfaceError):
                self._unnoted = results  # the database is away: the next call tries again
                raise
            except DatabaseError as error:
                self._note_each(results, error)

    def _note_each(self, results: list[Result], error: DatabaseError) -> None:
        """One of them cannot be written: its lease will run out, and the others are kept."""
        if len(results) == 1:
            log.error("delivery %s was not noted: %s", results[0].lease.delivery_id, type(error).__name__)
            return
        for result in results:
            self._unnoted = [result]
            self._note()


def _post(lease: Lease, now: Now) -> Result:
    began = now()
    answer = posting.post(
        lease.endpoint,
        message_id=lease.event_id,
        body=lease.body,
        merchant_mode=lease.merchant_mode,
        now=began,
        timeouts=client.Timeouts(connect=CONNECT_SECONDS, total=settings.WEBHOOK_SECONDS),
    )
    return Result(lease, answer, began=began, ended=now(), request_id=origin.current().request_id)


@lru_cache(maxsize=1)
def _dispatcher() -> Dispatcher:
    return Dispatcher(settings.WEBHOOK_THREADS)


def drain(*, now: Now = clock.now) -> int:
    """Deliver what is due, by this process's dispatcher."""
    return _dispatcher().drain(now)


def stop() -> None:
    """Let this process end soon: no more posts are begun."""
    _dispatcher().stop()
