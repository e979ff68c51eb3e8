"""`python -m bench.log_driver <turns> <requests>`: create codes, and measure the request log apart.

It is a process with the settings of the instance, and calls the WSGI application itself. The secret key is in
the environment variable KEY. Prints JSON: for each turn the microseconds of processor time a code, in all and
of the log. A difference of turns with the log and without it would be smaller than their noise.
"""

import argparse
import gc
import io
import json
import os
import time

# Standard output is for the result.
os.environ["LOG_STREAM"] = "stderr"

from django.http import HttpRequest, HttpResponse

from config.asgi import run_application
from config.capacity.shops import BODY, CREATE_PATH
from config.server import NEW_OBJECTS
from config.wsgi import application
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
    gc.set_threshold(NEW_OBJECTS)
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
    environ = {
        "REQUEST_METHOD": "POST",
        "PATH_INFO": CREATE_PATH,
        "QUERY_STRING": "",
        "SERVER_NAME": "127.0.0.1",
        "SERVER_PORT": "8000",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "REMOTE_ADDR": "127.0.0.1",
        "HTTP_HOST": "127.0.0.1",
        "HTTP_AUTHORIZATION": f"Bearer {os.environ['KEY']}",
        "HTTP_IDEMPOTENCY_KEY": ids.random_text(25),
        "CONTENT_TYPE": "application/json",
        "CONTENT_LENGTH": str(len(BODY)),
        "wsgi.url_scheme": "http",
        "wsgi.input": io.BytesIO(BODY),
    }
    status, _headers, body = run_application(application, environ)
    assert status == 200, body


if __name__ == "__main__":
    main()
