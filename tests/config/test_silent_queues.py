"""Which queues a worker serves by itself."""

from datetime import timedelta

import pytest
from django.conf import settings

from config.celery import app
from config.silent_queues import SilentQueues
from core import clock
from operations.nightly import heartbeats

pytestmark = pytest.mark.django_db


def test_queue_without_a_heartbeat_for_half_a_minute_is_silent() -> None:
    now = clock.now()
    for queue in settings.QUEUES:
        heartbeats.record(queue, now=now)
    heartbeats.record("transfers", now=now - heartbeats.SILENT_AFTER - timedelta(seconds=5))
    assert SilentQueues(app)._silent() == {"transfers"}


@pytest.mark.slow
def test_every_scheduled_task_of_a_queue_exists_and_the_heartbeat_is_known() -> None:
    app.loader.import_default_modules()
    tasks = [entry["task"] for entry in app.conf.beat_schedule.values()]
    assert set(tasks) <= app.tasks.keys()
    assert sorted(task for task in tasks if task.startswith(heartbeats.TASK)) == sorted(
        f"operations.heartbeat_{queue}" for queue in settings.QUEUES
    )
