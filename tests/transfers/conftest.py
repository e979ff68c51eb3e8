from collections.abc import Callable, Iterator
from typing import Any

import pytest
import time_machine

import banks
from core import clock
from tests.transfers.builders import Bank, RecordingHandler


@pytest.fixture
def stopped_clock() -> Iterator[None]:
    """No time passes but what a test lets pass."""
    with time_machine.travel(clock.now(), tick=False):
        yield


@pytest.fixture
def owner() -> RecordingHandler:
    return RecordingHandler()


@pytest.fixture
def served_by(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Bank]:
    """Lets every route lead to a bank that answers as told."""

    def serve(**replies: Any) -> Bank:
        bank = Bank(**replies)
        monkeypatch.setattr(banks, "sender", lambda route, link=None: bank)
        return bank

    return serve
