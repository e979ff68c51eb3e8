"""Who hears of finished requests of merchants: `request_log`, which is above `core` and connects itself."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

Listener = Callable[[HttpRequest, HttpResponse, float], None]
_connected: list[Listener] = []


def connect(listener: Listener) -> None:
    _connected[:] = [listener]


def report(request: HttpRequest, response: HttpResponse, seconds: float) -> None:
    """Tell that a request with a valid key has its response, after that many seconds."""
    for listener in _connected:
        listener(request, response, seconds)
