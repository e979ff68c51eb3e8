"""`python -m bench.log_driver <turns> <requests>`: create codes, and measure the request log apart.

It is a process with the settings of the instance, and calls the application itself. The secret key is in
the environment variable KEY. Prints JSON: for each turn the microseconds of processor time a code, in all and
of the log. A difference of turns with the log and without it would be smaller than their noise.
"""

import argparse
import gc
import json
import os
import time

# Standard output is for the result.
os.environ["LOG_STREAM"] = "stderr"

from django.http import HttpRequest, HttpResponse

from bench.shops import BODY, CREATE_PATH
from config.application import application
from config.asgi import ServiceRequest, answer
from core import ids
from request_log.recorder import RECORDER

WARM_UP = 300


class TimedLog:
    """The log's work for requests and for its writes. A write happens at the end of a turn."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._record, self._write = RECORDER.record, RECORDER.write
        RECORDER.record = self.record  # type: ignore[method-assign]
        # The thread of the recorder would write in the middle of a turn.
        RECORDER._start_writer = lambda: None  # type: ignore[method-assign]

    def record(self, request: HttpRequest, response: HttpResponse, seconds: float) -> None:
        started = time.thread_time()
        self._record(request, response, seconds)
        self.seconds += time.thread_time() - started

    def write(self) -> None:
        started = time.thread_time()
        self._write()
        self.seconds += time.thread_time() - started


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.log_driver", description=__doc__)
    parser.add_argument("turns", type=int)
    parser.add_argument("requests", type=int)
    given = parser.parse_args()
    # As in a web worker.
    gc.freeze()
    timed = TimedLog()
    _turn(timed, WARM_UP)
    print(json.dumps([_turn(timed, given.requests) for _ in range(given.turns)]))


def _turn(timed: TimedLog, requests: int) -> tuple[float, float]:
    """The processor time of this process for each code, and the part of the log."""
    timed.seconds = 0.0
    started = time.process_time()
    for _ in range(requests):
        _create()
    timed.write()
    return (time.process_time() - started) / requests * 1e6, timed.seconds / requests * 1e6


def _create() -> None:
    headers = {
        "host": "127.0.0.1",
        "authorization": f"Bearer {os.environ['KEY']}",
        "idempotency-key": ids.random_text(25),
        "content-type": "application/json",
        "content-length": str(len(BODY)),
    }
    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": CREATE_PATH,
        "query_string": b"",
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        "server": ("127.0.0.1", 8000),
        "client": ("127.0.0.1", 50_000),
    }
    request = ServiceRequest(scope)
    request.body_file.write(BODY)
    request.body_file.seek(0)
    status, _headers, body = answer(application, request)
    assert status == 200, body


if __name__ == "__main__":
    main()
