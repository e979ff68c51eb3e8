"""Deliver events: claim due deliveries, post them from an event loop, record the results.

One thread of a process claims in batches, another records in batches, each over a database connection. The
thread of the event loop only posts. So a slow receiver costs a socket, but no thread, no database connection
and no lock.
"""

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import datetime
from functools import lru_cache, partial
from queue import Empty, SimpleQueue
from uuid import UUID

from django.conf import settings
from django.db import DatabaseError, connection, connections

from core import clock, request_context
from core.database.availability import CONNECTION_ERRORS
from core.observing import telemetry
from webhooks import sending, wakeup
from webhooks.delivery import attempt_log
from webhooks.delivery.attempt_log import DeliveryResult
from webhooks.delivery.queue import ClaimLimits, Lease, Quota, RoundRobinClaimer
from webhooks.http import client, event_loop
from webhooks.messages import senders as messages
from webhooks.models import EndpointType

log = logging.getLogger("webhooks.delivery.dispatcher")
CONNECT_SECONDS = 3.0
RESULT_BATCH_SECONDS = 0.005  # batch results for 5 ms, so that one commit records many
SECONDS_BETWEEN_WAKEUPS = 0.5  # a worker with no room for more posts wakes another one, at most this often
Clock = Callable[[], datetime]


class Dispatcher:
    """The dispatcher of one process. Any number of processes may each run one."""

    def __init__(self, concurrency: int) -> None:
        self._concurrency = concurrency
        self._claimer = RoundRobinClaimer()
        self._run_lock = threading.Lock()
        # A post that ended, a recording that ended, or None to look for due deliveries again.
        self._signals: SimpleQueue[tuple[Lease, DeliveryResult | None] | Future[None] | None] = SimpleQueue()
        self._in_flight: dict[UUID, Lease] = {}
        # Only the thread that holds the lock uses what follows. The recorder gets a list that nobody changes.
        self._unrecorded: list[DeliveryResult] = []
        self._in_recording: list[DeliveryResult] = []
        self._recorder = ThreadPoolExecutor(1, "record deliveries")
        self._is_recorder_connected = False
        self._is_stopping = False
        self._next_wakeup = 0.0

    def drain(self, now: Clock) -> int:
        """Deliver until nothing is due or in flight. Return the number of started posts.

        If another thread already runs this, only make it look for deliveries again.
        """
        started = 0
        self._signals.put(None)
        # The thread that holds the lock may have taken its last signal just before this put. So try until the
        # queue is empty: it took this signal, or released the lock and this thread runs.
        while not self._signals.empty() and self._run_lock.acquire(blocking=False):
            try:
                started += self._run(now)
            finally:
                self._run_lock.release()
        return started

    def stop(self) -> None:
        """Start no more posts. A running `drain` waits for the posts in flight."""
        self._is_stopping = True
        self._signals.put(None)

    def disconnect(self) -> None:
        """Close the database connection of the recording thread. The next recording opens another one."""
        if self._is_recorder_connected:
            self._is_recorder_connected = False
            self._recorder.submit(connections.close_all).result()  # those of its thread

    def _run(self, now: Clock) -> int:
        started = 0
        while True:
            # Claim first: the results are recorded while the new posts are under way.
            claimed = self._claim(now())
            if claimed:
                # With the request context of the task that starts the posts. If the loop cannot start, their
                # leases expire.
                event_loop.start(partial(self._post, lease, now) for lease in claimed)
                self._in_flight |= {lease.lease_id: lease for lease in claimed}
                started += len(claimed)
            has_recorded = self._record()
            if self._in_flight or self._in_recording or not self._signals.empty():
                self._wait_for_results()
            elif not has_recorded:
                if started == 0:
                    self.disconnect()
                return started

    def _claim(self, now: datetime) -> list[Lease]:
        free = self._concurrency - len(self._in_flight)
        if self._is_stopping or free == 0 or self._has_backlog:
            return []
        # Slow and extra posts leave a quarter of the concurrency to others. One merchant gets a third
        # of it and a quarter of the slow quota, with any number of endpoints.
        taken = Counter(lease.quota for lease in self._in_flight.values())
        limits = ClaimLimits(
            posts=free,
            slow=max(0, max(1, self._concurrency // 2) - taken[Quota.SLOW]),
            extra=max(0, self._concurrency // 4 - taken[Quota.EXTRA]),
            per_merchant=max(1, self._concurrency // 3),
            slow_per_merchant=max(1, self._concurrency // 8),
            in_flight=list(self._in_flight.values()),
            # A failure may pause the endpoint, and the first success of a new one gives it more room. So
            # these count as in flight until they are recorded.
            ended=[
                each.lease.delivery_id
                for each in [*self._in_recording, *self._unrecorded]
                # The minute of a destination begins then.
                if each.post_result.error == ""
                and each.lease.quota is not Quota.SLOW
                and each.lease.endpoint.type == EndpointType.WEBHOOK
            ],
        )
        claimed = self._claimer.claim(now=now, limits=limits)
        if len(claimed) == free and time.monotonic() >= self._next_wakeup:
            self._next_wakeup = time.monotonic() + SECONDS_BETWEEN_WAKEUPS
            wakeup.wake()
        return claimed

    @property
    def _has_backlog(self) -> bool:
        """Whether so many results wait that no more posts may start: a kill would send them again."""
        return len(self._unrecorded) >= self._concurrency

    async def _post(self, lease: Lease, now: Clock) -> None:
        result = None
        try:
            result = await post_delivery(lease, now)
        except Exception as error:
            # The lease expires, and the attempt is recorded then. Other deliveries go on.
            log.error(
                "Delivery %s failed with an internal error: %s", lease.delivery_id, type(error).__name__
            )
        finally:
            self._signals.put((lease, result))

    def _wait_for_results(self) -> None:
        """Wait for a post to end and 5 ms for more, or for the recording if no post is in flight."""
        until = None
        while until is None or self._in_flight:
            try:
                signal = self._signals.get(timeout=until and max(0.0, until - time.monotonic()))
            except Empty:
                return
            if signal is None:
                return
            if isinstance(signal, Future):
                had_backlog = self._has_backlog
                # `result` raises here what the recording raised in its thread.
                results, self._in_recording = self._in_recording, []
                self._ensure_recorded(results, signal.result)
                self._record()
                if had_backlog or not self._in_flight:
                    return
            else:
                lease, result = signal
                # Until here the lease counted as in flight, so no claim could exceed the concurrency.
                self._in_flight.pop(lease.lease_id, None)
                if result is not None:
                    self._unrecorded.append(result)
                until = until or time.monotonic() + RESULT_BATCH_SECONDS

    def _record(self) -> bool:
        """Record the results of ended posts. Return whether there were some, which may make others due.

        While posts are in flight, another thread does it, so that this one can claim. A transaction of the
        caller could not see what another thread records.
        """
        if self._in_recording or not self._unrecorded:
            return False
        results, self._unrecorded = self._unrecorded, []
        if self._in_flight and not connection.in_atomic_block:
            self._is_recorder_connected = True
            recording = self._recorder.submit(_record_in_thread, results)
            self._in_recording = results
            recording.add_done_callback(self._signals.put)
        else:
            self._ensure_recorded(results, partial(attempt_log.record, results))
        return True

    def _ensure_recorded(self, results: list[DeliveryResult], record: Callable[[], object]) -> None:
        try:
            record()
        except CONNECTION_ERRORS:
            # The database is down: the next call tries again. The batch was one commit, so nothing of it is
            # stored, or all of it; then the leases are gone, and the second time only adds attempts.
            self._unrecorded = [*results, *self._unrecorded]
            raise
        except DatabaseError as error:
            if len(results) == 1:
                delivery_id = results[0].lease.delivery_id
                log.error("The result of delivery %s was not recorded: %s", delivery_id, type(error).__name__)
                return  # its lease expires
            # One of them cannot be stored. The others can, one by one.
            for result in results:
                self._ensure_recorded([result], partial(attempt_log.record, [result]))


def _record_in_thread(results: list[DeliveryResult]) -> None:
    try:
        attempt_log.record(results)
    except CONNECTION_ERRORS:
        connection.close()  # the next recording opens another one
        raise


async def post_delivery(lease: Lease, now: Clock) -> DeliveryResult:
    """Post a claimed delivery, without using the database."""
    started_at = now()
    with telemetry.delivery(lease.traceparent, lease.delivery_id, lease.attempt) as traceparent:
        timeouts = client.Timeouts(connect=CONNECT_SECONDS, total=settings.WEBHOOK_TIMEOUT_SECONDS)
        if lease.endpoint.type == EndpointType.WEBHOOK:
            post_result = await sending.send(
                lease.endpoint,
                message_id=lease.event_id,
                body=lease.body,
                merchant_mode=lease.merchant_mode or "",
                now=started_at,
                timeouts=timeouts,
                traceparent=traceparent,
            )
        else:
            post_result = await messages.send(
                lease.endpoint,
                message_id=min(lease.delivery_ids),
                bodies=[lease.body, *lease.lines],
                more=len(lease.companions) - len(lease.lines),
                merchant_name=lease.merchant_name or "",
                merchant_mode=lease.merchant_mode,
                timeouts=timeouts,
            )
        telemetry.record_outcome(outcome=post_result.error or "succeeded")
    return DeliveryResult(
        lease,
        post_result,
        started_at=started_at,
        ended_at=now(),
        request_id=request_context.current().request_id,
    )


@lru_cache(maxsize=1)
def _dispatcher() -> Dispatcher:
    return Dispatcher(settings.WEBHOOK_CONCURRENCY)


def drain(*, now: Clock = clock.now) -> int:
    return _dispatcher().drain(now)


def stop() -> None:
    """Start no more posts in this process."""
    _dispatcher().stop()
