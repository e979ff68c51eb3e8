"""The description of the API, and a page to read and try it that asks nothing of the internet."""

from functools import lru_cache

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from console import openapi as described
from console import reference
from core import http
from core.http import Answer
from core.methods import safe_only

# Swagger UI writes styles into its elements and shows pictures that it carries within itself.
PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)


@described.openapi
@safe_only
def openapi(request: HttpRequest) -> HttpResponse:
    return http.respond(Answer(200, _schema(), {"Cache-Control": "public, max-age=300"}))


@described.page
@safe_only
def page(request: HttpRequest) -> HttpResponse:
    response = render(request, "docs.html")
    response.headers["Content-Security-Policy"] = PAGE_POLICY
    return response


@lru_cache
def _schema() -> bytes:
    return Answer.of(reference.document()).body
