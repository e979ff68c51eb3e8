"""The description of the API, and a page to read and try it that asks nothing of the internet."""

from functools import lru_cache

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe
from drf_spectacular.generators import SchemaGenerator

from core import http
from core.http import Answer


@require_safe
def openapi(request: HttpRequest) -> HttpResponse:
    return http.respond(Answer(200, _schema(), {"Cache-Control": "public, max-age=300"}))


@require_safe
def page(request: HttpRequest) -> HttpResponse:
    return render(request, "docs.html")


@lru_cache
def _schema() -> bytes:
    return Answer.of(SchemaGenerator().get_schema(request=None, public=True)).body
