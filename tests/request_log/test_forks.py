"""The recorder in a fork of a process that has records, as a web worker is one."""

import os
import signal
from collections.abc import Iterator

import pytest
from django.http import HttpResponse
from django.test import RequestFactory
from pytest_django import Settings

from request_log.recorder import RECORDER, Recorder

pytestmark = pytest.mark.slow

DEADLINE_SECONDS = 30


@pytest.fixture
def recorder(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[Recorder]:
    settings.REQUEST_LOG_RETENTION_DAYS = 30
    monkeypatch.setattr(RECORDER, "_run", lambda: None)
    yield RECORDER
    RECORDER.forget()


def record(recorder: Recorder) -> None:
    request = RequestFactory().get("/v1/payments")
    request.merchant_id = "mch_x"  # type: ignore[attr-defined]
    recorder.record(request, HttpResponse("{}"), 0.001)


def test_fork_has_an_empty_buffer_and_a_thread_and_a_lock_of_its_own(recorder: Recorder) -> None:
    record(recorder)
    # As if another thread was recording.
    with recorder._changing:
        child = os.fork()
        if child == 0:
            signal.alarm(DEADLINE_SECONDS)
            try:
                record(recorder)
                os._exit(len(recorder._records) if recorder._writer is not None else 90)
            finally:
                os._exit(91)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1
    assert len(recorder._records) == 1
