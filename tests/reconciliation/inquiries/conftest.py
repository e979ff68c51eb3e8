from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
import time_machine

import banks
from core import clock
from reconciliation.models import ScanCursor
from tests.reconciliation.inquiries.builders import Answering, FakeBank, Reply


@pytest.fixture(autouse=True)
def around_noon(noon: datetime) -> Iterator[None]:
    """Stop the clock at noon, far from the inquiry after the end of the day."""
    with time_machine.travel(noon, tick=False):
        yield


@pytest.fixture(autouse=True)
def searched_until_now(db: None, around_noon: None) -> None:
    """The scan has reached the present, so that it does not read the last two days."""
    began = clock.now() - timedelta(minutes=1)
    ScanCursor.objects.create(created_before=began, scanned_until=began)


@pytest.fixture
def served_by(monkeypatch: pytest.MonkeyPatch) -> Answering:
    """Make a bank, by default the sandbox bank, give these answers to inquiries."""
    known: dict[str, FakeBank] = {}

    def get(name: str, link: Any = None) -> banks.Bank:
        return known[name]

    def serve(*replies: Reply, name: str = "sandbox", per_second: float = 50) -> FakeBank:
        known[name] = FakeBank(*replies, per_second=per_second)
        return known[name]

    monkeypatch.setattr(banks, "get", get)
    monkeypatch.setattr(banks, "configured_banks", lambda: known)
    return serve
