"""The loop of the process that sends callbacks: one thread for the database, one for each call under way."""

import logging
import threading
import time
from queue import Empty, Queue

from django.conf import settings
from django.db import InterfaceError, OperationalError, connection

from core import clock
from sandbox import callbacks
from sandbox.callbacks import CallbackResult
from sandbox.models import SandboxCallback

log = logging.getLogger("sandbox")

MAX_CONCURRENT = 8
POLL_SECONDS = 0.1
PAUSE_SECONDS = 0.5
STOP_SECONDS = 2.0


class CallbackWorker:
    """Sends due calls over up to `MAX_CONCURRENT` connections until it is stopped.

    Several processes may run one each.

    A result that could not be noted is forgotten: the lease ends and the call is sent again, which the
    service takes for the repetition that it is.
    """

    def __init__(self) -> None:
        self._is_stopping = False
        self._results: Queue[CallbackResult] = Queue()
        self._running = 0

    def stop(self) -> None:
        """Claim nothing more and let what is under way end. Safe to call in a signal handler."""
        self._is_stopping = True

    def run(self) -> None:
        log.info("Callbacks go to %s.", settings.BASE_URL)
        while not self._is_stopping:
            self._run_once()
        deadline = time.monotonic() + STOP_SECONDS
        while self._running and time.monotonic() < deadline:
            self._run_once()

    def _run_once(self) -> None:
        try:
            if not self._is_stopping:
                self._start_due()
            self._record_next()
        except (OperationalError, InterfaceError) as error:
            log.warning("The database does not answer: %s", error)
            connection.close()
            time.sleep(PAUSE_SECONDS)

    def _start_due(self) -> None:
        for callback in callbacks.claim(MAX_CONCURRENT - self._running):
            self._running += 1
            threading.Thread(target=self._send, args=(callback,), daemon=True).start()

    def _send(self, callback: SandboxCallback) -> None:
        self._results.put(callbacks.send(callback))

    def _record_next(self) -> None:
        try:
            result = self._results.get(timeout=POLL_SECONDS)
        except Empty:
            return
        self._running -= 1
        callbacks.record_result(result, now=clock.now())
