"""What each lasting process begins with: error reports, traces, metrics, errors of threads as log lines."""

import logging
import threading

from core.observing import error_reports, telemetry
from operations.metrics.process_reports import Reporter

log = logging.getLogger("threads")
_reporters: list[Reporter] = []


def begin(process: str) -> None:
    """Begin in the process named so, after its fork. A worker with beat in it calls it twice."""
    if _reporters:
        return
    threading.excepthook = _log_error
    error_reports.start(process)
    telemetry.start(process)
    _reporters.append(Reporter(process))
    _reporters[0].start()


def end() -> None:
    """Store and export what waits."""
    for reporter in _reporters:
        reporter.stop()
    telemetry.stop()


def _log_error(ended: threading.ExceptHookArgs) -> None:
    name = ended.thread.name if ended.thread else "unknown"
    if ended.exc_value is not None:
        error = (ended.exc_type, ended.exc_value, ended.exc_traceback)
        log.error("The thread %s ended by an error", name, exc_info=error)
