"""A recorder whose thread does not run: tests write its buffer themselves."""

import pytest
from pytest_django import Settings

from core import finished_requests
from request_log.recorder import Recorder


@pytest.fixture
def recorder(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Recorder:
    settings.REQUEST_LOG_RETENTION_DAYS = 30
    made = Recorder()
    monkeypatch.setattr(made, "_start_writer", lambda: None)
    monkeypatch.setattr(finished_requests, "_connected", [made.record])
    return made
