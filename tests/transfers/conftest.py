from collections.abc import Callable, Iterator
from typing import Any

import pytest
import time_machine

import banks
from core import clock
from tests.transfers.builders import Bank, FakeHandler


@pytest.fixture
def stopped_clock() -> Iterator[None]:
    """Time passes only when a test moves it."""
    with time_machine.travel(clock.now(), tick=False):
        yield


@pytest.fixture
def handler() -> FakeHandler:
    return FakeHandler()


@pytest.fixture
def served_by(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Bank]:
    """Make every route lead to a bank with these results."""

    def serve(**replies: Any) -> Bank:
        bank = Bank(**replies)
        monkeypatch.setattr(banks, "sender", lambda route, link=None: bank)
        return bank

    return serve
