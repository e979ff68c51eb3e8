"""Wake the workers. A bell that gets lost costs a second, because beat rings as well."""

import logging
import threading
import time
from collections.abc import Callable
from typing import Any

from celery import Celery
from django.conf import settings
from django.db import transaction

from core.redis import PATIENCE, Breaker
from webhooks import tallies

log = logging.getLogger("webhooks.doorbell")
TASK = "webhooks.drain"
QUEUE = "webhooks"
# At most one bell in this time. A ring in between sounds at its end, so nobody is forgotten.
GAP_SECONDS = 0.01
# While no worker runs bells do not pile up.
EXPIRES_SECONDS = 5


class Bell:
    """Rings from a thread of its own: whoever rings never waits, whatever Redis does.

    That thread calls `on_failure` for each ring that failed, at most once a second.
    """

    def __init__(self, broker_url: str, on_failure: Callable[[], None] = lambda: None) -> None:
        self.failures = 0
        self._on_failure = on_failure
        self._app = _caller(broker_url)
        self._breaker = Breaker()
        self._pulled = threading.Event()
        self._starting = threading.Lock()
        self._ringer: threading.Thread | None = None
        self._producer: Any = None

    def ring(self) -> None:
        """Send the task soon. Takes microseconds and never raises."""
        self._pulled.set()
        # A fork of a web server or worker has this object, but not its thread.
        if self._ringer is None or not self._ringer.is_alive():
            self._start()

    def _start(self) -> None:
        with self._starting:
            if self._ringer is not None and self._ringer.is_alive():
                return
            self._producer = None
            self._ringer = threading.Thread(target=self._run, name="doorbell", daemon=True)
            try:
                self._ringer.start()
            except RuntimeError:
                self.failures += 1

    def _run(self) -> None:
        while self._pulled.wait():
            self._pulled.clear()
            self._breaker.call(self._send_or_count, Exception)
            time.sleep(GAP_SECONDS)

    def _send_or_count(self) -> None:
        try:
            self._send()
        except Exception as error:
            self.failures += 1
            self._producer = None
            log.warning("The doorbell failed: %s", type(error).__name__)
            self._on_failure()
            raise

    def _send(self) -> None:
        if self._producer is None:
            self._producer = self._app.amqp.Producer(self._app.connection_for_write().channel())
        self._app.send_task(
            TASK,
            queue=QUEUE,
            producer=self._producer,
            ignore_result=True,
            retry=False,
            expires=EXPIRES_SECONDS,
        )


def _caller(broker_url: str) -> Celery:
    """A Celery app that only sends, with less patience than a worker has, whatever else is imported."""
    app = Celery("doorbell", broker=broker_url, set_as_current=False)
    app.conf.broker_transport_options = {"socket_timeout": PATIENCE, "socket_connect_timeout": PATIENCE}
    return app


_bell = Bell(settings.REDIS_URL, on_failure=tallies.count_lost_bell)


def ring() -> None:
    """Wake a worker; safe to call from anywhere, any number of times."""
    _bell.ring()


def ring_on_commit() -> None:
    """Ring once what the current transaction writes can be seen, and not at all if it is rolled back."""
    transaction.on_commit(ring, robust=True)
