"""The loop of the process that sends callbacks: one thread for the database, one for each call under way."""

import logging
import threading
import time
from queue import Empty, Queue

from django.conf import settings
from django.db import InterfaceError, OperationalError, connection

from core import clock
from sandbox import sending
from sandbox.models import SandboxCall
from sandbox.sending import Result

log = logging.getLogger("sandbox")

LINES = 8
POLL_SECONDS = 0.1
PAUSE_SECONDS = 0.5
STOP_SECONDS = 2.0


class Switchboard:
    """Sends due calls over up to `LINES` lines until told to stop. Several processes may run one each.

    A result that could not be noted is forgotten: the lease ends and the call is sent again, which the
    service takes for the repetition that it is.
    """

    def __init__(self) -> None:
        self._is_stopping = False
        self._ended: Queue[Result] = Queue()
        self._under_way = 0

    def stop(self) -> None:
        """Claim nothing more and let what is under way end. Safe to call in a signal handler."""
        self._is_stopping = True

    def run(self) -> None:
        log.info("Callbacks go to %s.", settings.BASE_URL)
        while not self._is_stopping:
            self._round()
        deadline = time.monotonic() + STOP_SECONDS
        while self._under_way and time.monotonic() < deadline:
            self._round()

    def _round(self) -> None:
        try:
            if not self._is_stopping:
                self._dial()
            self._note_next()
        except (OperationalError, InterfaceError) as error:
            log.warning("The database does not answer: %s", error)
            connection.close()
            time.sleep(PAUSE_SECONDS)

    def _dial(self) -> None:
        for call in sending.claim(LINES - self._under_way):
            self._under_way += 1
            threading.Thread(target=self._send, args=(call,), daemon=True).start()

    def _send(self, call: SandboxCall) -> None:
        self._ended.put(sending.send(call))

    def _note_next(self) -> None:
        try:
            result = self._ended.get(timeout=POLL_SECONDS)
        except Empty:
            return
        self._under_way -= 1
        sending.note(result, now=clock.now())
