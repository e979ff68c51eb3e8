"""Which processor a web worker keeps to."""

import os

import pytest

from config.server import processor_of


@pytest.fixture
def four_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 2, 4, 6}, raising=False)


@pytest.mark.usefixtures("four_processors")
@pytest.mark.parametrize("workers", [4, 8])
def test_workers_that_cover_all_processors_evenly_keep_to_one_each(workers: int) -> None:
    placed = [processor_of(number, workers) for number in range(workers)]
    assert placed == [0, 2, 4, 6] * (workers // 4)


@pytest.mark.usefixtures("four_processors")
@pytest.mark.parametrize("workers", [1, 2, 5])
def test_others_are_left_to_the_system(workers: int) -> None:
    assert {processor_of(number, workers) for number in range(workers)} == {None}


def test_where_processes_cannot_be_placed_nothing_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    assert processor_of(0, 1) is None
