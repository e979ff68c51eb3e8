"""Django's handler with a short way for the API. Decision 11 has what it saves."""

from functools import lru_cache
from typing import Any

from django.core.handlers.base import BaseHandler
from django.core.handlers.exception import convert_exception_to_response
from django.db import connection
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.urls import get_resolver

from core.http.middleware import AccessMiddleware

API_PREFIXES = ("/v1/", "/Thai/", "/banks/")
# Clients poll the same paths. A path that leads nowhere is not kept.
MAX_PATHS = 1024


class ServiceHandler(BaseHandler):
    """Requests of the API pass only the middleware that acts on them, and their routes are remembered.

    They have no sessions, cookies, forms or files, and there is one database. Django answers the rest.
    """

    def __init__(self) -> None:
        super().__init__()
        self.load_middleware()
        self._resolve = lru_cache(MAX_PATHS)(get_resolver().resolve)
        view: Any = convert_exception_to_response(self._call_view)
        self._answer: Any = convert_exception_to_response(AccessMiddleware(view))

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        connection.close_if_unusable_or_obsolete()
        is_api = request.path_info.startswith(API_PREFIXES)
        response: HttpResponseBase = self._answer(request) if is_api else self.get_response(request)
        return response

    def _call_view(self, request: HttpRequest) -> HttpResponse:
        request.resolver_match = match = self._resolve(request.path_info)
        response: HttpResponse = match.func(request, *match.args, **match.kwargs)
        return response
