"""Celery beat that leaves a sign of life in the database, so that readiness can tell it from a dead one."""

import logging
from datetime import timedelta
from typing import Any

from celery.beat import Scheduler as CeleryScheduler
from django.db import DatabaseError, close_old_connections

from console import heartbeats
from core import clock

log = logging.getLogger("beat")
EVERY = timedelta(seconds=5)


class Scheduler(CeleryScheduler):
    """The schedule lives in code and memory: every entry is a short interval, nothing needs remembering."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.signed_at = clock.now() - EVERY
        super().__init__(*args, **kwargs)

    def tick(self, *args: Any, **kwargs: Any) -> Any:
        self._sign()
        return super().tick(*args, **kwargs)

    def _sign(self) -> None:
        now = clock.now()
        if now - self.signed_at < EVERY:
            return
        self.signed_at = now
        try:
            close_old_connections()
            heartbeats.sign(heartbeats.BEAT, now=now)
        except DatabaseError as error:
            log.warning("no sign of life written: %s", type(error).__name__)
