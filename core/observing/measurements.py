"""What this process has measured: how often something happened, and how long it took.

To add takes about a microsecond and never waits for the database. `operations.metrics.process_reports` adds
the numbers of all processes in the database, so that each web process shows the same.
"""

import os
import threading
from bisect import bisect_left
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

from django.conf import settings
from django.http import HttpRequest

# A duration counts in the first bucket whose bound in seconds it does not exceed; longer ones in one more.
BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0)
HTTP_REQUEST, BANK_CALL, TASK, DELIVERY = "http_request", "bank_call", "task", "delivery"
# What is measured, and the names of its labels.
LABELS = {
    HTTP_REQUEST: ("method", "route", "status"),
    BANK_CALL: ("bank", "result"),
    TASK: ("task", "result"),
    DELIVERY: ("outcome",),
}
# What is only counted.
DROPPED_REQUEST, FAILED_WAKEUP = "dropped_request", "failed_wakeup"
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
OTHER_METHOD = "other"
# Labels of requests without a route: an unknown path, a static file, and a request that no thread answered.
UNKNOWN, STATIC, REFUSED = "unknown", "static", "refused"
SITES = ("/admin", "/shop")


class Key(NamedTuple):
    """One number. The values of `labels` must be few: never a path, an id or a text of a client."""

    name: str
    labels: tuple[str, ...]
    bucket: int


class Measurements:
    """The numbers of one process. `listener` gets each of them, too (`core.observing.telemetry`)."""

    def __init__(self) -> None:
        self.listener: Callable[[Key, float], None] | None = None
        self.forget()

    def forget(self) -> None:
        """Begin without numbers."""
        self._lock = threading.Lock()
        self._values: dict[Key, tuple[int, float]] = {}

    def add(self, name: str, labels: tuple[str, ...] = (), seconds: float = 0.0, *, count: int = 1) -> None:
        """Count something that took so long, or that happened so often."""
        key = Key(name, labels, bisect_left(BOUNDS, seconds))
        with self._lock:
            known, total = self._values.get(key, (0, 0.0))
            self._values[key] = (known + count, total + seconds)
        if self.listener is not None:
            self.listener(key, seconds)

    def take(self) -> dict[Key, tuple[int, float]]:
        """Return all numbers (count and seconds), and begin anew."""
        with self._lock:
            taken, self._values = self._values, {}
        return taken

    def put_back(self, taken: dict[Key, tuple[int, float]]) -> None:
        """Add what could not be stored."""
        with self._lock:
            for key, (count, seconds) in taken.items():
                known_count, known_seconds = self._values.get(key, (0, 0.0))
                self._values[key] = (known_count + count, known_seconds + seconds)


OF_PROCESS = Measurements()
# Web workers are forks. A fork has a copy of the numbers, and perhaps a lock that nobody releases.
os.register_at_fork(after_in_child=OF_PROCESS.forget)


def add_request(request: HttpRequest, status: int, seconds: float) -> None:
    method = str(request.method)
    labels = (method if method in METHODS else OTHER_METHOD, request_route(request), str(status))
    OF_PROCESS.add(HTTP_REQUEST, labels, seconds)


def request_route(request: HttpRequest) -> str:
    if request.resolver_match is not None:
        return route_label(request.resolver_match.route)
    return STATIC if request.path_info.startswith(settings.STATIC_URL) else UNKNOWN


def add_refused_request(status: int) -> None:
    """Count a request that was answered before it reached a thread."""
    OF_PROCESS.add(HTTP_REQUEST, (OTHER_METHOD, REFUSED, str(status)), 0.0)


@lru_cache(maxsize=512)
def route_label(route: str) -> str:
    """The label of a route: one for both forms of a path, and one for all pages of each site."""
    path = "/" + route.removeprefix("^").removeprefix("Thai/")
    return next((site for site in SITES if path.startswith(f"{site}/")), path)
