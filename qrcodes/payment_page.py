"""The page on which a customer pays a code: the picture, the amount, and what became of the payment.

It needs no key: nobody can guess the id of a code. It shows nothing about the payer.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any
from urllib.parse import urlencode

import orjson
from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseNotModified
from django.shortcuts import render
from django.utils import translation
from django.utils.translation.trans_real import parse_accept_lang_header

from core import clock, ids, money
from core.errors import ApiError
from core.http import client_addresses, rate_limits, responses
from core.http.api import error_response, get_or_head_only
from core.http.rate_limits import RateLimit
from merchants import page_origins
from merchants.models import Mode
from payments.models import HELD_EXCESS_STATUSES, HELD_STATUSES, Payment, PaymentStatus
from qrcodes import images, qr_cards
from qrcodes.errors import QrCodeGone, QrCodeInReview, QrCodeNotFound, TooManyPageRequests
from qrcodes.models import word_of
from qrcodes.qr_cards import CardRequest

# Requests of one network for pages and their states. The customers of a shop share the network of its Wi-Fi.
RATE = RateLimit(per_second=50, burst=200)
CARD_RATE = RateLimit(per_second=2, burst=30)  # each is drawn for 35 ms
LANGUAGES = {"th": "ไทย", "en": "English"}
# Banks report late. An older expired page does not ask any more.
ASKS_AFTER_EXPIRY = timedelta(hours=1)
PAGE_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors {ancestors}"
)


class PageState(StrEnum):
    """What the page says. It is the status of the payment, except for money that waits for a decision."""

    PENDING = "pending"
    PAID = "paid"
    EXCESS = "excess"  # paid, and more arrived
    REFUNDED = "refunded"
    REVIEW = "review"  # not paid; money arrived that does not match
    EXPIRED = "expired"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class _Shown:
    """A state, and the satang that wait for a decision."""

    state: PageState
    held_amount: int = 0

    @property
    def etag(self) -> str:
        return f'"{self.state}-{self.held_amount}"'


@get_or_head_only
def page(request: HttpRequest, qr_code_id: str) -> HttpResponse:
    language, now, origins = language_of(request), clock.now(), []
    with translation.override(language):
        try:
            payment = _find(request, qr_code_id)
        except ApiError as error:
            context = {"error": error, "language": language}
            response = render(request, "qrcodes/no_payment.html", context, status=error.status)
            if error.retry_after is not None:
                response.headers["Retry-After"] = str(error.retry_after)
        else:
            origins = payment.merchant.page_origins
            back = page_origins.return_url(payment.merchant, request.GET.get("return_url", ""))
            context = _context(payment, _shown(payment, now), now) | {
                "return_url": back,
                "languages": language_links(**({} if back is None else {"return_url": back})),
            }
            response = render(request, "qrcodes/pay.html", context)
    policy = PAGE_POLICY.format(ancestors=" ".join(origins) or "'none'")
    response.headers["Content-Security-Policy"] = policy
    response.headers["Content-Language"] = language
    return response


@get_or_head_only
def state(request: HttpRequest, qr_code_id: str) -> HttpResponse:
    """The state as JSON, or 304 while it is what the page shows, with the seconds that are left."""
    now = clock.now()
    try:
        payment = _find(request, qr_code_id)
    except ApiError as error:
        return error_response(error, request)
    shown = _shown(payment, now)
    headers = {
        "ETag": shown.etag,
        "Cache-Control": "no-cache",
        "Seconds-Left": str(_seconds_left(payment.expires_at or now, now)),
    }
    if shown.etag in request.headers.get("If-None-Match", ""):
        return HttpResponseNotModified(headers=headers)
    return HttpResponse(orjson.dumps({"state": shown.state}), content_type=responses.JSON, headers=headers)


@get_or_head_only
def card(request: HttpRequest, qr_code_id: str) -> HttpResponse:
    """The card as a PNG. Once the code shall not be paid: 410 with a picture of its status."""
    try:
        payment = _find(request, qr_code_id)
        check_payable(payment, clock.now())
        _check_rate(request, "payment-card", CARD_RATE)
        return qr_cards.respond(request, payment, CardRequest(lang=language_of(request)))
    except QrCodeGone as error:
        picture = images.status_image(word_of(str(error.context["status"])), "png")
        return HttpResponse(picture, status=error.status, content_type="image/png")
    except ApiError as error:
        return error_response(error, request)


def check_payable(payment: Payment, now: datetime) -> None:
    """Raises QrCodeGone unless the code waits for its money, and no other money arrived for it."""
    shown = _shown(payment, now)
    if shown.state == PageState.REVIEW:
        raise QrCodeInReview(status=shown.state)
    if shown.state != PageState.PENDING:
        raise QrCodeGone(status=payment.status_at(now))


def _check_rate(request: HttpRequest, name: str, rate: RateLimit) -> None:
    """Raises TooManyPageRequests."""
    network = client_addresses.network_of(client_addresses.address_of(request), ipv6_bits=64)
    rate_limits.check(f"{name}:{network}", rate, TooManyPageRequests)


def _find(request: HttpRequest, qr_code_id: str) -> Payment:
    """The payment of the code. Raises TooManyPageRequests, QrCodeNotFound."""
    _check_rate(request, "payment-page", RATE)
    payments = Payment.objects.filter(pk=ids.of_payment(qr_code_id), qr_code_id=qr_code_id)
    return ids.find(qr_code_id, "qr_", payments.first, QrCodeNotFound)


def _shown(payment: Payment, now: datetime) -> _Shown:
    status = payment.status_at(now)
    held = 0
    if payment.has_exceptions:
        found = payment.exceptions.filter(status__in=(*HELD_STATUSES, *HELD_EXCESS_STATUSES))
        held = sum(exception.held_amount for exception in found)
    if not held:
        return _Shown(PageState.PAID if status == PaymentStatus.SUCCEEDED else PageState(status))
    return _Shown(PageState.EXCESS if payment.completed_at is not None else PageState.REVIEW, held)


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


def _seconds_left(expires_at: datetime, now: datetime) -> int:
    return max(0, int((expires_at - now).total_seconds()))


def _context(payment: Payment, shown: _Shown, now: datetime) -> dict[str, Any]:
    is_test = payment.merchant.mode == Mode.TEST
    expires_at = payment.expires_at or now
    is_open = shown.state == PageState.PENDING
    at = expires_at.astimezone(clock.BANGKOK)
    is_today = at.date() == now.astimezone(clock.BANGKOK).date()
    return {
        "payment": payment,
        "shop": payment.merchant.name,
        "amount": money.display(payment.amount),
        "reference": payment.reference,
        "held_amount": money.display(shown.held_amount),
        "state": shown.state,
        "etag": shown.etag,
        "seconds_left": _seconds_left(expires_at, now),
        "pay_before": f"{at:%H:%M:%S}" if is_today else f"{at:%Y-%m-%d %H:%M:%S}",
        "is_open": is_open,
        "may_change": is_open
        or shown.state == PageState.REVIEW
        or (shown.state == PageState.EXPIRED and now - expires_at < ASKS_AFTER_EXPIRY),
        "is_test": is_test,
        "has_sandbox_bank": is_test and bool(settings.SANDBOX_BANK_SECRET),
        "language": translation.get_language(),
    }
