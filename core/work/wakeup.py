"""Wake the workers of a task. A lost wake-up delays work only, because beat also wakes them."""

import logging
import threading
import time
from typing import Any

from celery import Celery
from django.conf import settings

from core.observing import measurements
from core.work.redis import CALL_TIMEOUT_SECONDS, RedisBreaker
from core.work.redis_urls import Broker

log = logging.getLogger("wakeup")
# At most one message is sent in this time, for all wake-ups in it.
MIN_INTERVAL_SECONDS = 0.01
# So messages do not pile up while no worker runs.
MESSAGE_EXPIRES_SECONDS = 5


class WakeupSender:
    """Sends wake-ups for one task from a separate thread, so that callers never wait for Redis."""

    def __init__(self, task: str, queue: str, broker: Broker) -> None:
        self._task, self._queue = task, queue
        # An app that only sends, with shorter timeouts than a worker's.
        self._app = Celery("wakeup", broker=broker.url, set_as_current=False)
        short = dict.fromkeys(("socket_timeout", "socket_connect_timeout"), CALL_TIMEOUT_SECONDS)
        self._app.conf.broker_transport_options = {**broker.options, **short}
        self._app.conf.broker_use_ssl = broker.tls
        self._app.conf.task_queues = settings.CELERY_TASK_QUEUES
        self._breaker = RedisBreaker()
        self._requested = threading.Event()
        self._start_lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._producer: Any = None

    def wake(self) -> None:
        """Wake a worker soon. Takes microseconds and never raises."""
        self._requested.set()
        # A forked process has this object without its thread.
        if self._thread is None or not self._thread.is_alive():
            self._start()

    def _start(self) -> None:
        with self._start_lock:
            if self._thread is not None and self._thread.is_alive():
                return
            self._producer = None
            self._thread = threading.Thread(target=self._run, name="wakeup", daemon=True)
            try:
                self._thread.start()
            except RuntimeError:
                measurements.OF_PROCESS.add(measurements.FAILED_WAKEUP)

    def _run(self) -> None:
        while self._requested.wait():
            self._requested.clear()
            self._breaker.call(self._send, Exception)
            time.sleep(MIN_INTERVAL_SECONDS)

    def _send(self) -> None:
        try:
            if self._producer is None:
                self._producer = self._app.amqp.Producer(self._app.connection_for_write().channel())
            self._app.send_task(
                self._task,
                queue=self._queue,
                producer=self._producer,
                ignore_result=True,
                retry=False,
                expires=MESSAGE_EXPIRES_SECONDS,
            )
        except Exception as error:
            self._producer = None
            log.warning("The wake-up of the workers failed: %s", type(error).__name__)
            measurements.OF_PROCESS.add(measurements.FAILED_WAKEUP)
            raise
