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


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.log_driver", description=__doc__)
    parser.add_argument("pairs", type=int)
    parser.add_argument("requests", type=int)
    given = parser.parse_args()
    # As in a web worker.
    gc.freeze()
    gc.set_threshold(NEW_OBJECTS)
    _microseconds(ON, WARM_UP)
    print(json.dumps([_pair(number, given.requests) for number in range(given.pairs)]))


def _pair(number: int, requests: int) -> tuple[float, float]:
    """With the log, and without it. Each comes first in half of the pairs."""
    figures = {days: _microseconds(days, requests) for days in ((ON, OFF) if number % 2 else (OFF, ON))}
    return figures[ON], figures[OFF]


def _microseconds(days: int, requests: int) -> float:
    """The processor time of this process for each code, with all that the log has to write."""
    settings.REQUEST_LOG_RETENTION_DAYS = days
    started = time.process_time()
    for _ in range(requests):
        _create()
    RECORDER.write()
    return (time.process_time() - started) / requests * 1e6


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
