"""The reference: documents for programs, a page to read, and a page to try. They need no internet."""

from functools import lru_cache

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from apidocs import openapi as described
from apidocs import reference
from core.api import get_or_head_only
from core.http import JSON

TEXT = "text/plain; charset=utf-8"
CACHED = {"Cache-Control": "public, max-age=300"}
# Redoc and Swagger UI have inline styles and images as data URLs. Redoc searches in a worker of its own.
PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "connect-src 'self'; worker-src blob:; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)


@described.openapi
@get_or_head_only
def openapi(request: HttpRequest) -> HttpResponse:
    return _file("openapi.json", JSON)


@described.openapi_yaml
@get_or_head_only
def openapi_yaml(request: HttpRequest) -> HttpResponse:
    return _file("openapi.yaml", described.YAML)


@described.postman
@get_or_head_only
def postman(request: HttpRequest) -> HttpResponse:
    return _file("postman.json", JSON)


@described.llms
@get_or_head_only
def llms(request: HttpRequest) -> HttpResponse:
    return _file("llms.txt", TEXT)


@described.page
@get_or_head_only
def page(request: HttpRequest) -> HttpResponse:
    return _page(request, "docs.html")


@get_or_head_only
def trial_page(request: HttpRequest) -> HttpResponse:
    return _page(request, "docs_try.html")


def _file(name: str, content_type: str) -> HttpResponse:
    return HttpResponse(_published()[name], content_type=content_type, headers=CACHED)


@lru_cache
def _published() -> dict[str, bytes]:
    return {name: text.encode() for name, text in reference.published().items()}


def _page(request: HttpRequest, template: str) -> HttpResponse:
    response = render(request, template)
    response.headers["Content-Security-Policy"] = PAGE_POLICY
    return response
