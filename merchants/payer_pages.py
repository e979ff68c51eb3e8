"""What all pages for payers share: the language, the look of the shop, and the headers."""

from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import translation
from django.utils.translation.trans_real import parse_accept_lang_header

from merchants.models import Merchant, Mode, PageSettings

LANGUAGES = {"th": "ไทย", "en": "English"}
POLICY = "default-src 'none'; style-src 'self'{styles}; img-src 'self'; base-uri 'none'; "


def language_of(request: HttpRequest) -> str:
    """The language that the customer chose, else the first of the browser that the page has, else Thai."""
    chosen = request.GET.get("lang")
    if chosen in LANGUAGES:
        return chosen
    accepted = parse_accept_lang_header(request.headers.get("Accept-Language", "").lower())
    return next((name[:2] for name, _weight in accepted if name[:2] in LANGUAGES), "th")


def language_links(**kept: str) -> list[tuple[str, str, str]]:
    """A page in each language: its code, its name, and the query. kept: the other parameters."""
    return [(code, name, "?" + urlencode({"lang": code} | kept)) for code, name in LANGUAGES.items()]


def respond(
    request: HttpRequest,
    template: str,
    context: dict[str, Any],
    *,
    merchant: Merchant | None = None,
    policy: str = "form-action 'none'; frame-ancestors 'none'",
    status: int = 200,
) -> HttpResponse:
    """A page in the active language, in the look of `merchant`. policy: what it needs besides its style."""
    shared: dict[str, Any] = {"language": translation.get_language(), "languages": language_links()}
    look = None
    if merchant is not None:
        look = PageSettings.objects.defer("logo").filter(pk=merchant.pk).first()
        shared |= {"shop": merchant.name, "look": look, "is_test": merchant.mode == Mode.TEST}
    response = render(request, template, shared | context, status=status)
    styles = f" {look.style_source}" if look is not None and look.color else ""
    response.headers["Content-Security-Policy"] = POLICY.format(styles=styles) + policy
    response.headers["Content-Language"] = shared["language"]
    response.headers["Referrer-Policy"] = "no-referrer"
    return response
