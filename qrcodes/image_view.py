"""The picture of a code: no key (it goes into an <img>, and the id cannot be guessed), no personal data."""

import hashlib
from collections.abc import Callable

from django.http import HttpRequest, HttpResponse, HttpResponseNotModified

from core import api, clock, http, ids
from core.api import get_or_head_only
from payments.models import PaymentStatus
from qrcodes import images
from qrcodes import openapi as docs
from qrcodes.errors import InvalidFormat, QrCodeGone, QrCodeNotFound
from qrcodes.models import QrCode

PNG, SVG = "image/png", "image/svg+xml"
FORMATS = {"png": PNG, "svg": SVG}
DRAW: dict[str, Callable[[str], bytes]] = {PNG: images.png, SVG: images.svg}
DRAW_STATUS: dict[str, Callable[[str], bytes]] = {PNG: images.status_png, SVG: images.status_svg}
# What a code that cannot be paid any more says; a failed one has ended like an expired one.
STATUS_WORDS = {
    PaymentStatus.SUCCEEDED: "PAID",
    PaymentStatus.REFUNDED: "PAID",
    PaymentStatus.EXPIRED: "EXPIRED",
    PaymentStatus.FAILED: "EXPIRED",
}


@docs.image
@get_or_head_only
def image(request: HttpRequest, qr_code_id: str) -> HttpResponse:
    """PNG or SVG; 410 with a picture of a word once the code can no longer be paid."""
    try:
        return _picture(request, qr_code_id)
    except (QrCodeNotFound, QrCodeGone, InvalidFormat) as error:
        return api.error_response(error, request)


def _picture(request: HttpRequest, qr_code_id: str) -> HttpResponse:
    media_type, qr_code = _media_type(request), _find(qr_code_id)
    status = qr_code.payment.status_at(clock.now())
    if status == PaymentStatus.PENDING:
        return _cacheable(request, qr_code.qr_data, media_type, 200, DRAW)
    if _wants_json(request):
        raise QrCodeGone(status=status)
    return _cacheable(request, STATUS_WORDS[status], media_type, 410, DRAW_STATUS)


def _find(qr_code_id: str) -> QrCode:
    found = None
    if ids.looks_right(qr_code_id, "qr_"):
        found = QrCode.objects.select_related("payment").filter(pk=qr_code_id).first()
    if found is None:
        raise QrCodeNotFound(id=qr_code_id)
    return found


def _media_type(request: HttpRequest) -> str:
    asked = request.GET.get("format")
    if asked is None:
        return SVG if _asks_for_svg(request) else PNG
    if asked not in FORMATS:
        raise InvalidFormat(param="format")
    return FORMATS[asked]


def _asks_for_svg(request: HttpRequest) -> bool:
    """By name and without PNG: browsers name SVG for every <img> among all they can show."""
    asked = {kind.partition(";")[0].strip() for kind in request.headers.get("Accept", "").lower().split(",")}
    return SVG in asked and asked.isdisjoint({PNG, "image/*", "*/*"})


def _wants_json(request: HttpRequest) -> bool:
    return request.headers.get("Accept", "").partition(";")[0].strip().lower() == http.JSON


def _cacheable(
    request: HttpRequest, text: str, media_type: str, status: int, draw: dict[str, Callable[[str], bytes]]
) -> HttpResponse:
    """Drawn at the first request; a browser that has it asks again each time and gets a cheap 304.

    A 410 is always sent whole: a paid code must not live on in a cache.
    """
    etag = '"' + hashlib.sha256(f"{media_type} {text}".encode()).hexdigest()[:32] + '"'
    headers = {"ETag": etag, "Cache-Control": "no-cache", "Vary": "Accept", "X-Robots-Tag": "noindex"}
    if status == 200 and etag in request.headers.get("If-None-Match", ""):
        return HttpResponseNotModified(headers=headers)
    return HttpResponse(draw[media_type](text), status=status, content_type=media_type, headers=headers)
