"""A recorder whose thread does not run: tests write its buffer themselves."""

import pytest
from pytest_django import Settings

from core.http import middleware
from core.observing import measurements
from request_log.recorder import Recorder


@pytest.fixture
def recorder(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Recorder:
    settings.REQUEST_LOG_RETENTION_DAYS = 30
    made = Recorder()
    monkeypatch.setattr(made, "_run", lambda: None)
    measurements.OF_PROCESS.take()
    monkeypatch.setattr(middleware, "LISTENERS", [made.record])
    return made
