"""`make bench-quick` says what became slower, and what writes more, since the last commit."""

import json
from pathlib import Path
from statistics import StatisticsError

import pytest

from bench import guard
from bench.create_poll import PARTS
from bench.http import NotMeasurable
from bench.rounds import Candidate, Figures, run_rounds

CREATE = PARTS["create"]
PEER = {
    "per second": 500.0,
    "server us": 1000.0,
    "postgres us": 900.0,
    "WAL bytes": 4000.0,
    "full pages": 0.0,
}
OURS = PEER | {"postgres us": 1000.0, "WAL bytes": 5000.0}
COMMITTED = {"requests per second": 1.0, "processor time": 1.0, "time of PostgreSQL": 1.0, "kB of WAL": 5.0}


@pytest.fixture(autouse=True)
def stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "figures.json"
    path.write_text(
        json.dumps({guard.MACHINE: {f"{CREATE}: {name}": each for name, each in COMMITTED.items()}})
    )
    monkeypatch.setattr(guard, "FIGURES", path)
    return path


def compared(changed: Figures, *, is_kept: bool = False) -> str:
    rounds = [[each] * 8 for each in (OURS | changed, PEER)]
    return guard.compare({CREATE: [Candidate("", dict, each) for each in rounds]}, is_kept=is_kept)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "changed, named",
    [
        ({"per second": 400.0}, "requests per second slower"),
        ({"per second": 600.0}, "requests per second faster"),
        ({"server us": 1200.0}, "processor time slower"),
        ({"postgres us": 1200.0}, "time of PostgreSQL slower"),
        ({"WAL bytes": 5600.0}, "kB of WAL more"),
        ({"WAL bytes": 4400.0}, "kB of WAL less"),
    ],
)
def test_what_became_worse_or_better_is_named(changed: Figures, named: str) -> None:
    name, _, word = named.rpartition(" ")
    others = [
        line for line in compared(changed).splitlines()[2:] if not line.startswith(f"{CREATE}: {name} ")
    ]
    (line,) = (line for line in compared(changed).splitlines() if line.startswith(f"{CREATE}: {name} "))
    assert line.endswith(f" {word}")
    assert all(each.endswith("0") for each in others)


def test_a_tenth_more_of_the_write_ahead_log_and_the_full_pages_after_a_checkpoint_are_no_change() -> None:
    assert "more" not in compared({"WAL bytes": 5450.0})
    assert "more" not in compared({"WAL bytes": 13_000.0, "full pages": 8000.0})


def test_round_with_the_least_of_the_background_counts() -> None:
    rounds = [[OURS] + [OURS | {"WAL bytes": 9000.0}] * 7, [PEER] * 8]
    candidates = [Candidate("", dict, each) for each in rounds]  # type: ignore[arg-type]
    assert "more" not in guard.compare({CREATE: candidates}, is_kept=False)


def test_kept_figures_are_those_of_the_next_comparison(stored: Path) -> None:
    compared({"WAL bytes": 6000.0}, is_kept=True)
    assert json.loads(stored.read_text())[guard.MACHINE][f"{CREATE}: kB of WAL"] == 6.0
    assert "more" not in compared({"WAL bytes": 6000.0})


def test_figure_that_no_commit_has_is_named(stored: Path) -> None:
    stored.write_text("{}")
    assert all(line.endswith("not stored") for line in compared({}).splitlines()[2:])


@pytest.mark.parametrize("error", [ZeroDivisionError, StatisticsError])
def test_round_without_results_is_not_measurable(error: type[Exception]) -> None:
    def fail(extent: float) -> Figures:
        raise error

    with pytest.raises(NotMeasurable, match="no results"):
        run_rounds("create", [Candidate("peer", fail)], warm_up=1.0, extent=1.0, rounds=1)
