"""The first page, and the reference for programs, to read and to try. They need no internet."""

from functools import lru_cache

import orjson
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import translation

from apidocs import openapi as described, reference
from apidocs.code_samples import samples
from apidocs.sample_key import key_for
from core.http.api import View, get_or_head_only
from core.http.openapi import Operation
from core.http.responses import JSON
from merchants.payer_pages import language_links, language_of

TEXT = "text/plain; charset=utf-8"
CACHED = {"Cache-Control": "public, max-age=300"}
# Redoc and Swagger UI have inline styles and images as data URLs. Redoc searches in a worker of its own.
PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "connect-src 'self'; worker-src blob:; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)
START_POLICY = (
    "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'none'; base-uri 'none'; "
    "frame-ancestors 'none'"
)


@lru_cache
def _published() -> dict[str, bytes]:
    return {name: text.encode() for name, text in reference.published().items()}


def _file(operation: Operation, name: str, content_type: str) -> View:
    def view(request: HttpRequest) -> HttpResponse:
        return HttpResponse(_published()[name], content_type=content_type, headers=CACHED)

    return operation(get_or_head_only(view))


openapi = _file(described.openapi, "openapi.json", JSON)
openapi_yaml = _file(described.openapi_yaml, "openapi.yaml", described.YAML)
postman = _file(described.postman, "postman.json", JSON)
llms = _file(described.llms, "llms.txt", TEXT)


@lru_cache
def _samples(url: str, key: str) -> bytes:
    return orjson.dumps(samples(orjson.loads(_published()["openapi.json"]), url=url, key=key))


@get_or_head_only
def code_samples(request: HttpRequest) -> HttpResponse:
    """The samples of the reference, which adds them to the operations."""
    body = _samples(settings.BASE_URL, key_for(request))
    return HttpResponse(body, content_type=JSON, headers={"Cache-Control": "no-store"})


@get_or_head_only
def start(request: HttpRequest) -> HttpResponse:
    """The page at the root of the service: where to go from here."""
    language = language_of(request)
    context = {"shop": "Thai QR Payments", "language": language, "languages": language_links()}
    with translation.override(language):
        response = render(request, "start.html", context)
    response.headers["Content-Security-Policy"] = START_POLICY
    response.headers["Content-Language"] = language
    return response


def _page(template: str) -> View:
    """The view of a page without content of its own."""

    def view(request: HttpRequest) -> HttpResponse:
        response = render(request, template)
        response.headers["Content-Security-Policy"] = PAGE_POLICY
        return response

    return get_or_head_only(view)


page = described.page(_page("docs.html"))
trial_page = _page("docs_try.html")
