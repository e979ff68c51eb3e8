"""Metrics of the service itself: Redis, clocks, connections, archive, processes, audit trail, request log."""

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime

from django.conf import settings
from django.db import Error
from prometheus_client.core import Metric
from redis import Redis

from audit_trail.models import AuditRecord, UnchainedRecord
from core.database import replica, rows
from core.database.archiver import Archiver
from core.work import redis
from counts.models import OpenPeriod
from operations.metrics import health
from operations.metrics.families import Labels, age, counters, few, gauge, gauges
from operations.models import ProcessReport
from operations.nightly import heartbeats
from transfers import safe_mode

PROCESS_LABELS = ("host", "process", "pid")
_CONNECTIONS = """
SELECT sum(numbackends)::int,
    current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
FROM pg_stat_database
"""


def read_redis() -> Iterator[Metric]:
    lengths = redis.try_call(_queue_lengths)
    yield gauge("redis_up", lengths is not None)
    if lengths is not None:
        yield gauges("queue_length", "queue", lengths)


def _queue_lengths(client: Redis) -> dict[str, float]:
    pipeline = client.pipeline(transaction=False)
    for queue in settings.QUEUES:
        pipeline.llen(queue)
    return dict(zip(settings.QUEUES, map(float, pipeline.execute()), strict=True))


def read(now: datetime) -> Iterator[Metric]:
    yield gauge("clock_difference_seconds", health.clock_difference())
    first_open = OpenPeriod.objects.order_by("period").values_list("period", flat=True).first()
    yield gauge("counts_open_age_seconds", age(now, first_open))
    yield gauge("safe_mode", float(safe_mode.is_on()))
    used, limit = rows.run(_CONNECTIONS, []).fetchone()
    yield gauge("database_connections", used)
    yield gauge("database_connections_limit", limit)
    yield from _replica()
    archiver = Archiver.read()
    # No value if the server does not archive by `archive_mode`.
    ages = {(): archiver.age_seconds} if archiver.is_on else {}
    yield gauges("wal_archive_age_seconds", (), ages)
    yield from _processes()
    silent = {name: float(is_silent) for name, is_silent in heartbeats.silent(now=now).items()}
    yield gauges("heartbeat_silent", "part", silent)
    waiting = UnchainedRecord.objects.all()
    first = waiting.order_by("pk").values("pk")[:1]
    oldest = AuditRecord.objects.filter(pk=first).values_list("created_at", flat=True)
    yield gauge("audit_records_unchained", few(waiting))
    yield gauge("audit_records_oldest_unchained_seconds", age(now, oldest.first()))


def _replica() -> Iterator[Metric]:
    """No values without a replica, and no lag of one that does not answer."""
    up: dict[Labels, float] = {}
    lag: dict[Labels, float] = {}
    if replica.is_configured():
        with suppress(Error):
            lag[()] = replica.lag_bytes()
        up[()] = float(bool(lag))
    yield gauges("replica_up", (), up)
    yield gauges("replica_lag_bytes", (), lag)


def _processes() -> Iterator[Metric]:
    found: dict[Labels, ProcessReport] = {
        (each.host, each.process, str(each.pid)): each for each in ProcessReport.objects.all()
    }
    versions = Counter(each.version for each in found.values())
    versions[settings.VERSION] += 0
    yield gauges("processes", "version", versions)
    for column in ("memory_bytes", "open_files", "max_files"):
        values = {labels: float(getattr(each, column)) for labels, each in found.items()}
        yield gauges(f"process_{column}", PROCESS_LABELS, values)
    started = {labels: each.started_at.timestamp() for labels, each in found.items()}
    yield gauges("process_start_time_seconds", PROCESS_LABELS, started)
    used = {labels: each.processor_seconds for labels, each in found.items()}
    yield counters("process_cpu_seconds", PROCESS_LABELS, used)
