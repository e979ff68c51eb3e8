"""A task that a broker carries, by the options that the service gives to Celery."""

from celery import Celery
from kombu import Exchange, Queue

from core.work.redis_urls import Broker

QUEUE = Queue("carried", Exchange("carried"), "carried")
SECONDS = 30.0


def is_carried(broker: Broker) -> bool:
    """Publish a task and consume it. Raises OperationalError."""
    app = Celery("carried", set_as_current=False)
    app.conf.update(
        broker_url=broker.url,
        broker_use_ssl=broker.tls,
        broker_transport_options=broker.options,
        task_publish_retry=False,
        task_default_queue=QUEUE.name,
        task_queues=[QUEUE],
    )
    app.send_task("arrive")
    with app.connection_for_read() as connection, connection.SimpleQueue(QUEUE) as waiting:  # type: ignore[arg-type]
        message = waiting.get(timeout=SECONDS)
        message.ack()
    return bool(message.headers["task"] == "arrive")
