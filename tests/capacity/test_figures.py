"""Which resource ends first, and what is advised."""

from typing import Any

import pytest

from config.capacity import figures
from config.capacity.figures import LOAD, MACHINE, POSTGRES, Round


@pytest.fixture(autouse=True)
def four_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "CORES", 4)


def made_up(**cores: float) -> dict[str, float]:
    """The cores of each group of processes."""
    return {LOAD: 0.1, MACHINE: 0.5, "web": 0.0} | {
        NAMES.get(name, name): used for name, used in cores.items()
    }


def report_of(**cores: float) -> str:
    """2 web processes, 100 lives a second at best, 20 kB each."""
    rates = ((1, 30), (4, 100), (16, 80))
    rounds = [round_of(at_once, rate, made_up(**cores)) for at_once, rate in rates]
    return figures.report(rounds, web_workers=2, commit_ms=1.5, bytes_each=20_000)


NAMES = {"load": LOAD, "machine": MACHINE, "postgres": POSTGRES}


def round_of(at_once: int, rate: int, cores: dict[str, float]) -> Round:
    return Round(at_once, [0.01] * rate * 30, [0.04] * rate * 10, seconds=10.0, cores=cores)


@pytest.mark.parametrize(
    ("cores", "first", "advice"),
    [
        ({"machine": 3.9, "postgres": 2.0, "web": 1.6}, MACHINE, "another machine for PostgreSQL"),
        ({"machine": 3.9, "postgres": 1.8, "web": 1.9}, MACHINE, "another machine for web"),
        (
            {"machine": 3.9, "webhooks": 1.4, "web": 1.3, "postgres": 1.0},
            MACHINE,
            "another machine for webhooks",
        ),
        ({"machine": 3.9, "web": 1.9}, MACHINE, "without the other programs, which took 1.9"),
        ({"machine": 2.4, "web": 1.9}, "web", "Set WEB_WORKERS=4"),
        ({"machine": 2.4, "webhooks": 0.95}, "webhooks", "--queues webhooks --name webhooks2"),
        ({"machine": 1.0, "load": 0.97}, LOAD, "at least"),
    ],
)
def test_full_resource_ends_first(cores: dict[str, Any], first: str, advice: str) -> None:
    report = report_of(**cores)
    assert f"Ends first: {first}, " in report
    assert advice in report


def test_web_with_a_process_for_each_core_needs_another_machine() -> None:
    assert "Add a machine" in figures.advice("web", made_up(machine=3.0, web=3.9), 4)


def test_without_a_full_resource_nothing_ended_first() -> None:
    report = report_of(machine=0.5)
    assert "Ends first: nothing." in report
    assert "WEB_THREADS" in report
    assert "a commit takes 1.50 ms" in report


def test_report_gives_the_best_step_and_what_a_day_adds() -> None:
    report = report_of(machine=3.92, web=2.0, postgres=1.7)
    assert "Best: 100 whole lives a second (code, payment, webhook, poll), 4 at once." in report
    assert "a day takes 172.8 GB of disk: 20.0 kB for a payment" in report  # 86,400 × 100 × 20 kB
    assert "Plan for 50 whole lives a second" in report
    assert "Ends first: processors of this machine, 98% busy." in report
