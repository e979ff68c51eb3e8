"""The OpenAPI document, and a page to read and try the API. The page needs no internet."""

from functools import lru_cache

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from apidocs import openapi as described
from apidocs import reference
from core import http
from core.api import get_or_head_only
from core.http import ApiResponse

# Swagger UI has inline styles and images as data URLs.
DOCS_PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)


@described.openapi
@get_or_head_only
def openapi(request: HttpRequest) -> HttpResponse:
    return http.to_django(ApiResponse(200, _schema(), {"Cache-Control": "public, max-age=300"}))


@described.page
@get_or_head_only
def page(request: HttpRequest) -> HttpResponse:
    response = render(request, "docs.html")
    response.headers["Content-Security-Policy"] = DOCS_PAGE_POLICY
    return response


@lru_cache
def _schema() -> bytes:
    return ApiResponse.of(reference.document()).body
