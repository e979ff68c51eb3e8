"""The queues of the background work, who fills them and who serves them."""

from django.conf import settings

import banks
from config.celery import BEAT, app
from config.devstack import services
from payments import inquiries
from transfers import services as transfers

WORKERS = [program.command for program in services.workers({}) if "worker" in program.command]


def option(command: object, name: str) -> str:
    parts = [str(part) for part in command]  # type: ignore[attr-defined]
    return parts[parts.index(name) + 1]


def test_every_queue_is_served_by_one_process_and_signs_that_it_is() -> None:
    served = [queue for command in WORKERS for queue in option(command, "-Q").split(",")]
    assert sorted(served) == sorted(settings.QUEUES)
    app.loader.import_default_modules()
    for queue in settings.QUEUES:
        assert (f"console.beat_{queue}", queue) in {(task, queue) for _, task, _, queue, _ in BEAT}
        assert f"console.beat_{queue}" in app.tasks


def test_beat_fills_no_queue_that_nobody_serves() -> None:
    assert {queue for _, _, _, queue, _ in BEAT} == set(settings.QUEUES)


def test_cards_outgoing_money_and_inquiries_have_queues_of_their_own() -> None:
    queues = {task: queue for _, task, _, queue, _ in BEAT}
    assert queues["payments.inquire_due"] == "cards"
    assert {queues[task] for task in ("refunds.run_due", "withdrawals.run_due", "receipts.run_returns")} == {
        "transfers"
    }
    assert queues["receipts.inquire_due"] == "inquiries"


def test_runs_of_cards_and_transfers_leave_threads_for_inquiries_and_signs_of_life() -> None:
    (threads,) = [int(option(command, "-c")) for command in WORKERS if "transfers" in option(command, "-Q")]
    runs_of_inquiries = len(banks.LIVE) + 1  # one for each bank, the sandbox bank too
    assert threads >= inquiries.RUNS + transfers.RUNS + runs_of_inquiries + 3  # signs of life
