"""The card of a code: what it says, who may have how many, and caching. `qrcodes.drawing` draws it."""

import hashlib
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from django.http import HttpRequest, HttpResponse, HttpResponseNotModified
from django.utils import translation
from django.utils.translation import gettext as _

from core import clock, money, rate_limits
from core.bulkhead import Bulkhead, BulkheadFull
from core.rate_limits import RateLimit
from merchants.models import Merchant, Mode
from payments.models import Payment
from qrcodes.errors import TooManyQrCards

if TYPE_CHECKING:
    from qrcodes.drawing.layout import Texts

PNG, PDF = "png", "pdf"
FORMATS = {PNG: "image/png", PDF: "application/pdf"}
LANGUAGES = ["th", "en"]
MIN_SIZE, MAX_SIZE, DEFAULT_SIZE = 200, 2000, 1000
"""Pixels of the width."""
# A card takes 25 ms of CPU, at the largest size 95 ms and 17 MB.
MERCHANT_RATE = RateLimit(per_second=5, burst=50)
DRAWN_AT_ONCE, WAIT_SECONDS = 2, 2.0
"""In this process. One merchant has one at once."""
# At most 100 kB each.
CACHED_CARDS = 64
# Part of the ETag: a new look gets a new number.
LOOK = 1
_slots = Bulkhead()


class CardRequest(NamedTuple):
    """The card that somebody wants. `size`: pixels of its width."""

    format: str = PNG
    size: int = DEFAULT_SIZE
    lang: str = "th"


class _Content(NamedTuple):
    """What a card depends on."""

    payload: str
    shop: str
    satang: int
    reference: str
    expires_at: datetime
    is_test: bool


def respond(request: HttpRequest, payment: Payment, wanted: CardRequest) -> HttpResponse:
    """The card of a code that can be paid, or 304 to somebody who has it.

    Raises TooManyQrCards.
    """
    content, media_type = _content(payment), FORMATS[wanted.format]
    etag = '"' + hashlib.sha256(repr((LOOK, wanted, content)).encode()).hexdigest()[:32] + '"'
    headers = {"ETag": etag, "Cache-Control": "no-cache", "X-Robots-Tag": "noindex"}
    if etag in request.headers.get("If-None-Match", ""):
        return HttpResponseNotModified(headers=headers)
    headers["Content-Disposition"] = f'inline; filename="{payment.qr_code_id}.{wanted.format}"'
    card = _draw_within_limits(payment.merchant, wanted, content)
    return HttpResponse(card, content_type=media_type, headers=headers)


def _content(payment: Payment) -> _Content:
    return _Content(
        payment.qr_code.qr_data,
        payment.merchant.name,
        payment.amount,
        payment.reference or "",
        payment.expires_at or payment.created_at,
        payment.merchant.mode == Mode.TEST,
    )


def _draw_within_limits(merchant: Merchant, wanted: CardRequest, content: _Content) -> bytes:
    rate_limits.check(f"qr-card:{merchant.id}", MERCHANT_RATE, TooManyQrCards)
    try:
        with _slots.hold(merchant.id, total=DRAWN_AT_ONCE, share=1, wait_seconds=WAIT_SECONDS):
            return _draw(wanted, content)
    except BulkheadFull:
        raise TooManyQrCards(retry_after=1) from None


@lru_cache(CACHED_CARDS)
def _draw(wanted: CardRequest, content: _Content) -> bytes:
    from qrcodes.drawing import layout, pdf, png

    with translation.override(wanted.lang):
        texts = _texts(content)
    card = layout.arrange(texts, content.payload)
    if wanted.format == PDF:
        return pdf.draw(card, wanted.size, f"{texts.shop} · {texts.amount}", wanted.lang)
    return png.draw(card, wanted.size)


def _texts(content: _Content) -> "Texts":
    """The texts in the active language. Times are those of Bangkok."""
    from qrcodes.drawing.layout import Texts

    at = content.expires_at.astimezone(clock.BANGKOK)
    return Texts(
        shop=content.shop,
        amount=money.display(content.satang),
        reference=f"{_('Reference')} {content.reference}" if content.reference else "",
        expiry=_("Pay before %(at)s (Bangkok time)") % {"at": f"{at:%Y-%m-%d %H:%M:%S}"},
        test_mark=_("Test mode: no real money") if content.is_test else "",
    )
