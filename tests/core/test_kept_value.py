"""What strangers may ask for is computed once a second, by one thread."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from core import kept_value
from core.kept_value import KeptValue


@pytest.fixture(autouse=True)
def kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_value, "KEPT_SECONDS", 60.0)


def test_value_is_computed_once_for_many_threads() -> None:
    computed: list[int] = []

    def compute() -> int:
        computed.append(threading.get_ident())
        return len(computed)

    value = KeptValue(compute)
    with ThreadPoolExecutor(8) as threads:
        assert set(threads.map(lambda _: value.get(), range(50))) == {1}
    assert len(computed) == 1


def test_value_is_computed_anew_after_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers: Iterator[int] = iter(range(10))
    value = KeptValue(lambda: next(numbers))
    assert (value.get(), value.get()) == (0, 0)
    monkeypatch.setattr(kept_value, "KEPT_SECONDS", 0.0)
    assert value.get() == 1


def test_failed_computation_is_repeated() -> None:
    value = KeptValue(lambda: 1 // len(known))
    known: list[int] = []
    with pytest.raises(ZeroDivisionError):
        value.get()
    known.append(1)
    assert value.get() == 1
