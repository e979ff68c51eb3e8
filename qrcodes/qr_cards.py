"""Cards of codes and receipts: what they say, who may have how many, caching. `qrcodes.drawing` draws."""

import hashlib
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

from django.http import HttpRequest, HttpResponse, HttpResponseNotModified
from django.utils import translation
from django.utils.translation import gettext as _

from core import clock, money
from core.http import rate_limits
from core.http.rate_limits import RateLimit
from core.work.bulkhead import Bulkhead, BulkheadFull
from merchants.models import Mode
from payments.models import Payment
from qrcodes.drawing import Texts
from qrcodes.errors import TooManyQrCards

PNG, PDF = "png", "pdf"
FORMATS = {PNG: "image/png", PDF: "application/pdf"}
LANGUAGES = ["th", "en"]
MIN_SIZE, MAX_SIZE, DEFAULT_SIZE = 200, 2000, 1000
"""Pixels of the width."""
# A card takes 35 ms of CPU, at the largest size 130 ms and 25 MB.
MERCHANT_RATE = RateLimit(per_second=5, burst=50)
DRAWN_AT_ONCE, WAIT_SECONDS = 2, 2.0
"""In this process. One merchant has one at once."""
CACHED_CARDS = 64  # at most 100 kB each
# Part of the ETag: a new look gets a new number.
LOOK = 3
_slots = Bulkhead()


class CardRequest(NamedTuple):
    """The card that somebody wants. `size`: pixels of its width."""

    format: str = PNG
    size: int = DEFAULT_SIZE
    lang: str = "th"


def respond(request: HttpRequest, payment: Payment, wanted: CardRequest) -> HttpResponse:
    """The card of a code that can be paid, or 304 to somebody who has it. Raises TooManyQrCards."""
    return _respond(request, payment, wanted, payment.qr_code.qr_data, texts_of, payment.qr_code_id)


def respond_receipt(request: HttpRequest, payment: Payment, lang: str) -> HttpResponse:
    """The receipt of a paid code, on a card without a code. Raises TooManyQrCards."""
    return _respond(request, payment, CardRequest(lang=lang), "", receipt_texts_of, f"{payment.id}-receipt")


def _respond(
    request: HttpRequest,
    payment: Payment,
    wanted: CardRequest,
    payload: str,
    texts_in_language: Callable[[Payment], Texts],
    name: str | None,
) -> HttpResponse:
    with translation.override(wanted.lang):
        texts = texts_in_language(payment)
    etag = '"' + hashlib.sha256(repr((LOOK, wanted, payload, texts)).encode()).hexdigest()[:32] + '"'
    headers = {"ETag": etag, "Cache-Control": "no-cache", "X-Robots-Tag": "noindex"}
    if etag in request.headers.get("If-None-Match", ""):
        return HttpResponseNotModified(headers=headers)
    headers["Content-Disposition"] = f'inline; filename="{name}.{wanted.format}"'
    rate_limits.check(f"qr-card:{payment.merchant_id}", MERCHANT_RATE, TooManyQrCards)
    try:
        with _slots.hold(payment.merchant_id, total=DRAWN_AT_ONCE, share=1, wait_seconds=WAIT_SECONDS):
            card = _draw(wanted, payload, texts)
    except BulkheadFull:
        raise TooManyQrCards(retry_after=1) from None
    return HttpResponse(card, content_type=FORMATS[wanted.format], headers=headers)


@lru_cache(CACHED_CARDS)
def _draw(wanted: CardRequest, payload: str, texts: Texts) -> bytes:
    # Only here, because their libraries take 70 ms to load.
    from qrcodes.drawing import layout, pdf, png

    card = layout.arrange(texts, payload)
    if wanted.format == PDF:
        return pdf.draw(card, wanted.size, f"{texts.shop} · {texts.amount}", wanted.lang)
    return png.draw(card, wanted.size)


def texts_of(payment: Payment) -> Texts:
    """The texts in the active language. Times are those of Bangkok."""
    at = clock.display_to_payer(payment.expires_at or payment.created_at)
    return _texts(payment, payment.amount, _("Pay before %(at)s (Bangkok time)") % {"at": at})


def receipt_texts_of(payment: Payment) -> Texts:
    """What a payer may keep as a proof. A tax invoice has other rules, and comes from the shop."""
    at = clock.display_to_payer(payment.completed_at or payment.created_at)
    facts = [_("Paid on %(at)s (Bangkok time)") % {"at": at}]
    if payment.bank_reference:
        facts.append(f"{_('Bank reference')} {payment.bank_reference}")
    return _texts(payment, payment.received, _("This is not a tax invoice."))._replace(
        title=_("PROOF OF PAYMENT"), facts=tuple(facts)
    )


def _texts(payment: Payment, amount: int, note: str) -> Texts:
    return Texts(
        shop=payment.merchant.name,
        amount=money.with_sign(amount),
        reference=f"{_('Reference')} {payment.reference}" if payment.reference else "",
        note=note,
        test_mark=_("Test mode: no real money") if payment.merchant.mode == Mode.TEST else "",
    )
