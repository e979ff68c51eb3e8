"""A WSGI application that returns its environ as JSON. It runs as a separate process."""

import json
import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from config.asgi import BODY_TOO_LARGE, Environ, StartResponse

LARGE = 60_000


def application(environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
    if environ["PATH_INFO"] == "/boom":
        raise ValueError("a fault of the application")
    if environ["PATH_INFO"] == "/slow":
        Path(environ["QUERY_STRING"]).touch()
        time.sleep(1)
    if environ["PATH_INFO"] == "/large":
        with Path(environ["QUERY_STRING"]).open("ab") as file:
            file.write(b"x")
        start_response("200 OK", [("Content-Length", str(LARGE))])
        return [b"x" * LARGE]
    if environ["PATH_INFO"] == "/empty":
        start_response("204 No Content", [])
        return [b"nothing of this may be sent"]
    body = json.dumps(shown(environ)).encode()
    start_response("200 OK", [("Content-Type", "application/json"), ("Content-Length", str(len(body)))])
    return [body]


def shown(environ: Environ) -> dict[str, Any]:
    """The texts of the environ, the body, and the process id."""
    plain = {name: value for name, value in environ.items() if isinstance(value, str)}
    body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH", 0)))
    return {
        **plain,
        "body": body.decode("latin-1"),
        "too_large": environ.get(BODY_TOO_LARGE, False),
        "pid": os.getpid(),
    }
