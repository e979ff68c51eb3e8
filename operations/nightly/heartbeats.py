"""Heartbeats of beat and of the workers of each queue."""

from datetime import datetime, timedelta

from django.conf import settings

from operations.models import Heartbeat

BEAT = "beat"
TASK = "operations.heartbeat_"
SILENT_AFTER = timedelta(seconds=30)  # three missed heartbeats of a worker, six of beat


def record(name: str, *, now: datetime) -> None:
    Heartbeat.objects.update_or_create({"recorded_at": now}, name=name)


def silent(*, now: datetime) -> dict[str, bool]:
    """For beat and each queue: whether its last heartbeat is older than 30 s."""
    last_seen = dict(Heartbeat.objects.values_list("name", "recorded_at"))
    oldest = now - SILENT_AFTER
    return {name: name not in last_seen or last_seen[name] < oldest for name in (BEAT, *settings.QUEUES)}
