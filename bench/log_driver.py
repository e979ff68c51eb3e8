"""`python -m bench.log_driver <pairs> <requests>`: create codes with the request log on and off in turn.

It is a process with the settings of the instance, and calls the WSGI application itself. The secret key is in
the environment variable KEY. Prints JSON: for each pair the microseconds of processor time a code, with the
log and without it.
"""

import argparse
import gc
import io
import json
import os
import time
from collections.abc import Callable
from statistics import median
from typing import Any

# Standard output is for the result.
os.environ["LOG_STREAM"] = "stderr"

from django.conf import settings

from bench.comparison import BODY
from bench.shops import CREATE_PATH
from config.server import NEW_OBJECTS
from config.wsgi import application
from core import ids
from request_log.recorder import RECORDER

WARM_UP = 300
ON, OFF = 30, 0  # days
# Short turns, because the speed of a machine changes from one tenth of a second to the next.
TURN = 25


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.log_driver", description=__doc__)
    parser.add_argument("pairs", type=int)
    parser.add_argument("requests", type=int)
    given = parser.parse_args()
    # As in a web worker.
    gc.freeze()
    gc.set_threshold(NEW_OBJECTS)
    _turn(ON, WARM_UP)
    _write()
    print(json.dumps([_pair(given.requests) for _ in range(given.pairs)]))


def _pair(requests: int) -> tuple[float, float]:
    """A code with the log, and without it: medians of turns of both. The log is written at the end."""
    figures: dict[int, list[float]] = {ON: [], OFF: []}
    for number in range(requests // TURN):
        for days in (ON, OFF) if number % 2 else (OFF, ON):
            figures[days].append(_turn(days, TURN) / TURN)
    return median(figures[ON]) + _write() / requests, median(figures[OFF])


def _turn(days: int, requests: int) -> float:
    """Make codes. Returns microseconds of processor time of this process."""
    settings.REQUEST_LOG_RETENTION_DAYS = days
    return _time_of(lambda: [_create() for _ in range(requests)])


def _write() -> float:
    return _time_of(RECORDER.write)


def _time_of(call: Callable[[], Any]) -> float:
    started = time.process_time()
    call()
    return (time.process_time() - started) * 1e6


def _create() -> None:
    statuses: list[str] = []

    def start_response(status: str, headers: Any) -> None:
        statuses.append(status)

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
    with_response = application(environ, start_response)
    b"".join(with_response)
    with_response.close()
    assert statuses == ["200 OK"], statuses


if __name__ == "__main__":
    main()
