"""The till of a shop, at `/shop/till`: the page, its manifest and worker, what it asks for, and slips."""

import hashlib
from pathlib import Path
from typing import Any

import orjson
from django.http import HttpRequest, HttpResponse, HttpResponseNotModified, JsonResponse
from django.templatetags.static import static
from django.urls import reverse
from django.utils.translation import gettext as _

from core import clock, money
from core.console import sites
from core.http import middleware, responses, uploads
from shop.till import money_in, slips
from shop.till.views import TillCodeViewSet

WORKER = Path(__file__).with_name("worker.js")
PAGE_POLICY = f"{middleware.CONSOLE_POLICY}; manifest-src 'self'"


def page(request: Any) -> HttpResponse:
    context = {"merchant": request.membership.merchant, "language": money_in.language()}
    limits = {"least": money.MIN_AMOUNT, "most": money.MAX_AMOUNT}
    shown = sites.page(request, "shop/till.html", _("Till"), **context, **limits)
    shown.headers["Content-Security-Policy"] = PAGE_POLICY
    return shown


def manifest(request: Any) -> HttpResponse:
    """What a device needs to install the till."""
    till, shop = _("Till"), request.membership.merchant.name
    icon = {"src": static("console/icon.svg"), "sizes": "any", "type": "image/svg+xml"}
    fields = {
        "name": f"{till} · {shop}",
        "short_name": till,
        "start_url": reverse("till"),
        "scope": reverse("till"),
        "display": "standalone",
        "background_color": "#f4f6f9",
        "theme_color": "#0b5cab",
        "icons": [icon],
    }
    return JsonResponse(fields, content_type="application/manifest+json")


def worker(request: Any) -> HttpResponse:
    """The service worker, which opens the till without a network."""
    headers = {"Service-Worker-Allowed": reverse("till")}
    return HttpResponse(WORKER.read_bytes(), content_type="text/javascript", headers=headers)


def make_code(request: HttpRequest) -> HttpResponse:
    return TillCodeViewSet.as_view({"post": "create"})(request)


def end_code(request: HttpRequest, qr_code_id: str) -> HttpResponse:
    return TillCodeViewSet.as_view({"post": "expire"})(request, qr_code_id=qr_code_id)


def state(request: Any) -> HttpResponse:
    """What the till shows, or 304 if it shows that already."""
    named = request.GET.getlist("code")[: money_in.MAX_NAMED]
    body = orjson.dumps(money_in.state(request.membership.merchant, named, clock.now()))
    etag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
    headers = {"ETag": etag, "Cache-Control": "no-store"}
    if etag == request.headers.get("If-None-Match"):
        return HttpResponseNotModified(headers=headers)
    return HttpResponse(body, content_type=responses.JSON, headers=headers)


def check_slip(request: Any) -> HttpResponse:
    """What is known about the slip on a picture, in words."""
    picture = request.FILES.get("picture")
    read = b"" if picture is None else picture.read(uploads.MAX_PICTURE + 1)
    found = slips.check(request.membership.merchant, read)
    return JsonResponse({"findings": [{"level": level, "text": text} for level, text in found]})
