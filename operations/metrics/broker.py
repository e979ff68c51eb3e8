"""Metrics of Redis and of the broker: whether they answer, and the tasks that wait in the queues."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from amqp.exceptions import AMQPError, NotFound
from django.conf import settings
from kombu import Connection
from kombu.exceptions import OperationalError
from prometheus_client.core import Metric
from redis import Redis

from core import redis
from operations.metrics.families import gauge, gauges


def read() -> Iterator[Metric]:
    is_up = redis.try_call(lambda client: client.ping()) is not None
    yield gauge("redis_up", "Whether Redis answers.", is_up)
    lengths = _of_rabbitmq() if settings.BROKER.is_rabbitmq else redis.try_call(_of_redis)
    yield gauge("broker_up", "Whether the broker answers: RabbitMQ or Redis.", lengths is not None)
    if lengths is not None:
        yield gauges("queue_length", "Tasks that wait for a worker.", "queue", lengths)


def _of_redis(client: Redis) -> dict[str, float]:
    pipeline = client.pipeline(transaction=False)
    for queue in settings.QUEUES:
        pipeline.llen(queue)
    return dict(zip(settings.QUEUES, map(float, pipeline.execute()), strict=True))


def _of_rabbitmq() -> dict[str, float] | None:
    """None if it does not answer. Each scrape connects: RabbitMQ is rarely asked."""
    try:
        with settings.BROKER.connection(redis.CALL_TIMEOUT_SECONDS) as connection:
            return {queue: _length(connection, queue) for queue in settings.QUEUES}
    except (OperationalError, AMQPError, OSError):
        return None


def _length(connection: Connection, queue: str) -> float:
    channel: Any = connection.channel()
    with suppress(NotFound), channel:  # no worker has declared it yet
        return float(channel.queue_declare(queue, passive=True).message_count)
    return 0.0
