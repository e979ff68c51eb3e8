"""Signs of life of the background parts."""

import logging
from datetime import datetime, timedelta
from typing import Any

from celery.beat import Scheduler as CeleryScheduler
from django.conf import settings
from django.db import DatabaseError, close_old_connections

from core import clock
from operations.models import Heartbeat

BEAT = "beat"
SILENT_AFTER = timedelta(seconds=30)  # six missed signs


def record(name: str, *, now: datetime) -> None:
    Heartbeat.objects.bulk_create(
        [Heartbeat(name=name, recorded_at=now)],
        update_conflicts=True,
        update_fields=["recorded_at"],
        unique_fields=["name"],
    )


def silent(*, now: datetime) -> dict[str, bool]:
    """For beat and each queue: whether nothing was heard of it lately."""
    last_seen = dict(Heartbeat.objects.values_list("name", "recorded_at"))
    oldest = now - SILENT_AFTER
    return {name: name not in last_seen or last_seen[name] < oldest for name in (BEAT, *settings.QUEUES)}


log = logging.getLogger("beat")
RECORD_EVERY = timedelta(seconds=5)


class HeartbeatScheduler(CeleryScheduler):
    """The schedule lives in code and memory: every entry is a short interval, nothing needs remembering."""

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
            log.warning("no sign of life written: %s", type(error).__name__)
