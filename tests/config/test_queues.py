"""The queues of the background work, who fills them and who serves them."""

from typing import Any

import pytest
from django.conf import settings
from kombu.transport import virtual

import banks
from config.celery import BEAT_SCHEDULE, app
from config.workers import ALL, WORKERS, worker_for
from payments import card_inquiries
from transfers import services as transfers


def test_every_queue_has_one_worker_and_a_heartbeat() -> None:
    assert sorted(ALL.queues) == sorted(settings.QUEUES)
    app.loader.import_default_modules()
    for queue in settings.QUEUES:
        assert (f"operations.heartbeat_{queue}", queue) in {
            (task, queue) for _, task, _, queue in BEAT_SCHEDULE
        }
        assert f"operations.heartbeat_{queue}" in app.tasks


def test_beat_uses_only_served_queues() -> None:
    assert {queue for _, _, _, queue in BEAT_SCHEDULE} == set(settings.QUEUES)


def test_cards_transfers_and_inquiries_have_own_queues() -> None:
    queues = {task: queue for _, task, _, queue in BEAT_SCHEDULE}
    assert queues["payments.inquire_due"] == "cards"
    assert {
        queues[task] for task in ("refunds.run_due", "withdrawals.run_due", "reconciliation.run_returns")
    } == {"transfers"}
    assert queues["reconciliation.inquire_due"] == "inquiries"


def test_worker_threads_suffice_for_inquiries_and_heartbeats() -> None:
    threads = WORKERS["banks"].threads
    runs_of_inquiries = len(banks.LIVE_BANKS) + 1  # one for each bank, the sandbox bank too
    assert (
        threads >= card_inquiries._work.max_runs + transfers._work.max_runs + runs_of_inquiries + 3
    )  # signs of life


@pytest.mark.parametrize(
    ("names", "threads"),
    [
        (["webhooks"], 4),
        (["banks"], 20),
        (["transfers"], 12),
        (["cards", "transfers"], 20),
        (["default", "webhooks"], 8),
        (["banks", "transfers"], 20),
        (["webhooks", "banks", "default"], ALL.threads),
    ],
)
def test_threads_of_a_worker_follow_from_its_queues(names: list[str], threads: int) -> None:
    assert worker_for(names).threads == threads


def test_unknown_queue_is_refused() -> None:
    with pytest.raises(KeyError, match="mail"):
        worker_for(["webhooks", "mail"])


def test_redis_keeps_no_messages_for_confirmation() -> None:
    with app.connection_for_read() as connection:
        channel: Any = connection.channel()
        assert type(channel.qos) is virtual.QoS  # the one of Redis stores each message a second time
