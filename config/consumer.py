"""The part of a worker that receives tasks."""

from celery.worker import consumer


class Consumer(consumer.Consumer):
    """Without delayed delivery, for which Celery declares 28 queues: no task waits in the broker."""

    class Blueprint(consumer.Consumer.Blueprint):  # type: ignore[misc, valid-type]  # celery-types
        default_steps = [
            step for step in consumer.Consumer.Blueprint.default_steps if "delayed_delivery" not in step
        ]
