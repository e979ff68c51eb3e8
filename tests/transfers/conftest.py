from collections.abc import Callable
from typing import Any

import pytest

import banks
from tests.transfers.cast import Bank, Recorder


@pytest.fixture
def owner() -> Recorder:
    return Recorder()


@pytest.fixture
def served_by(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Bank]:
    """Lets every route lead to a bank that answers as told."""

    def serve(**replies: Any) -> Bank:
        bank = Bank(**replies)
        monkeypatch.setattr(banks, "sender", lambda route, link=None: bank)
        return bank

    return serve
