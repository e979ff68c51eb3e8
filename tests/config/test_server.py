"""Which processor a web worker keeps to."""

import os

import pytest

from config.server import processor_for


@pytest.fixture
def four_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 2, 4, 6}, raising=False)


@pytest.mark.usefixtures("four_processors")
@pytest.mark.parametrize("workers", [4, 8])
def test_workers_are_pinned_if_they_cover_all_processors_evenly(workers: int) -> None:
    placed = [processor_for(number, workers) for number in range(workers)]
    assert placed == [0, 2, 4, 6] * (workers // 4)


@pytest.mark.usefixtures("four_processors")
@pytest.mark.parametrize("workers", [1, 2, 5])
def test_uneven_number_of_workers_is_not_pinned(workers: int) -> None:
    assert {processor_for(number, workers) for number in range(workers)} == {None}


def test_workers_are_not_pinned_without_sched_affinity(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    assert processor_for(0, 1) is None
