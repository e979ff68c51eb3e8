"""Heartbeats of beat and of the workers of each queue."""

import logging
from datetime import datetime, timedelta
from typing import Any

from celery.beat import Scheduler as CeleryScheduler
from django.conf import settings
from django.db import DatabaseError, close_old_connections

from core import clock
from operations.models import Heartbeat

BEAT = "beat"
SILENT_AFTER = timedelta(seconds=30)  # six missed heartbeats


def record(name: str, *, now: datetime) -> None:
    Heartbeat.objects.bulk_create(
        [Heartbeat(name=name, recorded_at=now)],
        update_conflicts=True,
        update_fields=["recorded_at"],
        unique_fields=["name"],
    )


def silent(*, now: datetime) -> dict[str, bool]:
    """For beat and each queue: whether its last heartbeat is older than 30 s."""
    last_seen = dict(Heartbeat.objects.values_list("name", "recorded_at"))
    oldest = now - SILENT_AFTER
    return {name: name not in last_seen or last_seen[name] < oldest for name in (BEAT, *settings.QUEUES)}


log = logging.getLogger("beat")
RECORD_EVERY = timedelta(seconds=5)


class HeartbeatScheduler(CeleryScheduler):
    """A scheduler without a file: all intervals are short, so it need not remember the last runs."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.recorded_at = clock.now() - RECORD_EVERY
        super().__init__(*args, **kwargs)

    def tick(self, *args: Any, **kwargs: Any) -> Any:
        self._record()
        return super().tick(*args, **kwargs)

    def _record(self) -> None:
        now = clock.now()
        if now - self.recorded_at < RECORD_EVERY:
            return
        self.recorded_at = now
        try:
            close_old_connections()
            record(BEAT, now=now)
        except DatabaseError as error:
            log.warning("the heartbeat of beat was not written: %s", type(error).__name__)
