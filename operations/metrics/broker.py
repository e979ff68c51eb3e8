"""Metrics of Redis: whether it answers, and the tasks that wait in the queues."""

from collections.abc import Iterator

from django.conf import settings
from prometheus_client.core import Metric
from redis import Redis

from core import redis
from operations.metrics.families import gauge, gauges


def read() -> Iterator[Metric]:
    lengths = redis.try_call(_lengths)
    yield gauge("redis_up", "Whether Redis answers.", lengths is not None)
    if lengths is not None:
        yield gauges("queue_length", "Tasks that wait for a worker.", "queue", lengths)


def _lengths(client: Redis) -> dict[str, float]:
    pipeline = client.pipeline(transaction=False)
    for queue in settings.QUEUES:
        pipeline.llen(queue)
    return dict(zip(settings.QUEUES, map(float, pipeline.execute()), strict=True))
