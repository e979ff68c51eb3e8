"""What all pages for payers share: the language, the look of the shop, and the headers."""

from collections.abc import Callable
from functools import wraps
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.utils import translation
from django.utils.translation.trans_real import parse_accept_lang_header
from django.views.decorators.csrf import csrf_exempt

from core.errors import ApiError, MethodNotAllowed
from core.http import api
from merchants.models import Merchant, Mode, PageSettings

METHODS = ("GET", "HEAD", "POST")
LANGUAGES = {"th": "ไทย", "en": "English"}
POLICY = "default-src 'none'; style-src 'self'{styles}; img-src 'self'; base-uri 'none'; "


def language_of(request: HttpRequest) -> str:
    """The language that the customer chose, else the first of the browser that the page has, else Thai."""
    chosen = request.GET.get("lang")
    if chosen in LANGUAGES:
        return chosen
    accepted = parse_accept_lang_header(request.headers.get("Accept-Language", "").lower())
    return next((name[:2] for name, _weight in accepted if name[:2] in LANGUAGES), "th")


def with_form(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """A page with a form, in the language of the visitor. No token of CSRF: it would need a cookie."""

    @csrf_exempt
    @wraps(view)
    def page(request: HttpRequest, **kwargs: Any) -> HttpResponse:
        if request.method not in METHODS:
            # Django's decorator would log the path, which is a secret.
            response = api.error_response(MethodNotAllowed(method=request.method), request)
            response.headers["Allow"] = ", ".join(METHODS)
            return response
        with translation.override(language_of(request)):
            return view(request, **kwargs)

    return page


def lead_to(name: str, key: str) -> HttpResponse:
    """Lead to a page, in the active language."""
    chosen = urlencode({"lang": translation.get_language()})
    return HttpResponseRedirect(f"{reverse(name, args=[key])}?{chosen}", status=303)


def refuse(request: HttpRequest, template: str, error: ApiError, **context: Any) -> HttpResponse:
    response = respond(request, template, {"error": error} | context, status=error.status)
    if error.retry_after is not None:
        response.headers["Retry-After"] = str(error.retry_after)
    return response


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
