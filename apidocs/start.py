"""The page at the root of the service: where to go from here."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import translation

from core.api import get_or_head_only
from qrcodes.payment_page import language_links, language_of

PAGE_POLICY = (
    "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'none'; base-uri 'none'; "
    "frame-ancestors 'none'"
)


@get_or_head_only
def page(request: HttpRequest) -> HttpResponse:
    language = language_of(request)
    context = {
        "shop": "Thai QR Payments",
        "language": language,
        "languages": language_links(),
    }
    with translation.override(language):
        response = render(request, "start.html", context)
    response.headers["Content-Security-Policy"] = PAGE_POLICY
    response.headers["Content-Language"] = language
    return response
