"""Django's WSGI handler with a short way for the API. Decision 11 has what it saves."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from django.core.handlers.exception import convert_exception_to_response
from django.core.handlers.wsgi import WSGIHandler, WSGIRequest
from django.db import connection
from django.http import HttpRequest, HttpResponse
from django.urls import get_resolver

from core.middleware import AccessMiddleware

API_PREFIXES = ("/v1/", "/Thai/", "/banks/")
# Clients poll the same paths. A path that leads nowhere is not kept.
MAX_PATHS = 1024


class ServiceRequest(WSGIRequest):
    """A request whose query and forms are UTF-8, whatever charset it names.

    Django decodes them by that charset, also by those of Python that decode no text, such as `hex`: then it
    answers 500.
    """

    @property
    def encoding(self) -> str:
        return "utf-8"

    @encoding.setter
    def encoding(self, value: str) -> None:
        pass


class ServiceHandler(WSGIHandler):
    """Requests of the API pass only the middleware that acts on them, and their routes are remembered.

    They have no sessions, cookies, forms or files, and there is one database. Django answers the rest.
    """

    request_class = ServiceRequest

    def load_middleware(self, is_async: bool = False) -> None:
        super().load_middleware(is_async)
        self._resolve = lru_cache(MAX_PATHS)(get_resolver().resolve)
        view: Any = convert_exception_to_response(self._call_view)
        self._answer: Any = convert_exception_to_response(AccessMiddleware(view))

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Any:
        if not environ["PATH_INFO"].startswith(API_PREFIXES):
            return super().__call__(environ, start_response)
        connection.close_if_unusable_or_obsolete()
        response = self._answer(self.request_class(environ))
        start_response(f"{response.status_code} {response.reason_phrase}", [*response.items()])
        return response

    def _call_view(self, request: HttpRequest) -> HttpResponse:
        request.resolver_match = match = self._resolve(request.path_info)
        response: HttpResponse = match.func(request, *match.args, **match.kwargs)
        return response
