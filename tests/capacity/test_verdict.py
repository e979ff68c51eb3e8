"""Which resource ends first, and what is advised."""

from typing import Any

import pytest

from config.capacity import text, verdict
from config.capacity.sampling import LOCKS, LOG, ON_PROCESSOR
from tests.capacity import made_up

NO_DISK = {LOG: 0}


@pytest.mark.parametrize(
    ("taken", "first", "advice"),
    [
        ({"machine": 3.9, "postgres": 2.0, "web": 1.6}, verdict.MACHINE, "PostgreSQL a machine of its own"),
        ({"machine": 3.9, "postgres": 1.8, "web": 1.9}, verdict.MACHINE, "second machine with web"),
        (
            {"machine": 3.9, "webhooks": 1.4, "web": 1.3, "postgres": 1.0},
            verdict.MACHINE,
            "the worker of webhooks",
        ),
        ({"machine": 3.9, "web": 1.9}, verdict.MACHINE, "without the other programs, which took 2.0"),
        ({"machine": 2.4, "web": 1.9}, "web", "Set WEB_WORKERS=4"),
        ({"machine": 2.4, "webhooks": 0.95}, "worker of webhooks", "--queues webhooks --name webhooks2"),
        ({"machine": 1.0, "load": 0.97}, "the shops of this measurement", "at least"),
        ({"machine": 1.0, "sessions": {LOG: 2}}, "disk of PostgreSQL (fsync)", "a commit took 1.5 ms"),
        ({"machine": 1.0, "sessions": {LOCKS: 6}}, "locks in PostgreSQL", "lower WEB_WORKERS"),
    ],
)
def test_full_resource_ends_first(taken: dict[str, Any], first: str, advice: str) -> None:
    figures = made_up.figures(made_up.samples(**({"sessions": NO_DISK} | taken)))
    judged = verdict.judge(figures)
    assert judged.first is not None
    assert judged.first.name == first
    assert advice in judged.advice


def test_web_with_a_process_for_each_core_needs_another_machine() -> None:
    figures = made_up.figures(made_up.samples(2.2, NO_DISK, web=1.9), cores=2 + 1, web_workers=3)
    web = next(each for each in verdict.judge(figures).resources if each.name == "web")
    assert "second machine" in web.add


def test_sessions_tell_of_a_postgresql_on_another_machine() -> None:
    taken = made_up.samples(0.5, {ON_PROCESSOR: 4})
    judged = verdict.judge(made_up.figures(taken, has_local_postgres=False))
    assert judged.first is not None
    assert judged.first.name == "processors of PostgreSQL"


def test_without_a_full_resource_nothing_ended_first() -> None:
    judged = verdict.judge(made_up.figures(made_up.samples(0.5, NO_DISK)))
    assert judged.first is None
    assert "WEB_THREADS" in judged.advice


def test_report_gives_the_best_step_and_what_a_day_adds() -> None:
    figures = made_up.figures(made_up.samples(3.92, NO_DISK, web=2.0, postgres=1.0))
    report = text.report(figures, verdict.judge(figures))
    assert "   100   code, payment at the bank" in report
    assert "103,680,000   12 rows of the database for a payment" in report  # 86,400 × 100 × 12
    assert "172.8 GB   20.0 kB for a payment" in report
    assert "Plan for 50 whole lives a second" in report
    assert "Ends first: processors of this machine, 98% busy." in report
