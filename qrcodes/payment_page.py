"""The page on which a customer pays a code: the picture, the amount, and what became of the payment.

It needs no key: nobody can guess the id of a code. It shows nothing about the payer.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

import orjson
from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseNotModified, HttpResponseRedirect
from django.urls import reverse
from django.utils import translation
from django.views.decorators.csrf import csrf_exempt

from core import clock, ids, money
from core.errors import ApiError
from core.http import api, client_addresses, rate_limits, responses
from core.http.api import error_response, get_or_head_only
from core.http.rate_limits import RateLimit
from merchants import page_origins, page_settings, payer_pages
from merchants.errors import BankNotConfigured, MerchantSuspended
from merchants.models import Mode
from merchants.payer_pages import language_of
from payments.models import HELD_EXCESS_STATUSES, HELD_STATUSES, Payment, PaymentStatus
from qrcodes import images, qr_cards, services
from qrcodes.errors import QrCodeGone, QrCodeInReview, QrCodeNotFound, QrCodeSuspended, TooManyPageRequests
from qrcodes.models import word_of
from qrcodes.qr_cards import CardRequest
from qrcodes.services import NotRenewable

# Requests of one network for pages and their states. The customers of a shop share the network of its Wi-Fi.
RATE = RateLimit(per_second=50, burst=200)
CARD_RATE = RateLimit(per_second=2, burst=30)  # each is drawn for 35 ms
RENEWAL_RATE = RateLimit(per_second=0.2, burst=10)
ASKS_AFTER_EXPIRY = timedelta(hours=1)  # Banks report late. An older expired page does not ask any more.
POLICY = "script-src 'self'; connect-src 'self'; form-action 'self'; frame-ancestors {ancestors}"


class PageState(StrEnum):
    """What the page says. It is the status of the payment, except for money that waits for a decision."""

    PENDING = "pending"
    PAID = "paid"
    EXCESS = "excess"  # paid, and more arrived
    REFUNDED = "refunded"
    REVIEW = "review"  # not paid; money arrived that does not match
    SUSPENDED = "suspended"  # its shop takes no payments now
    EXPIRED = "expired"
    FAILED = "failed"


PAID = (PageState.PAID, PageState.EXCESS)
ENDED = (PageState.EXPIRED, PageState.FAILED)


@dataclass(frozen=True, slots=True)
class ShownState:
    """A state, and the satang that wait for a decision."""

    state: PageState
    held_amount: int = 0

    @property
    def etag(self) -> str:
        return f'"{self.state}-{self.held_amount}"'


@get_or_head_only
def page(request: HttpRequest, qr_code_id: str) -> HttpResponse:
    with translation.override(language_of(request)):
        try:
            payment = _find(request, qr_code_id)
        except ApiError as error:
            return payer_pages.refuse(request, "qrcodes/no_payment.html", error)
        now, merchant = clock.now(), payment.merchant
        shown = shown_of(payment, now)
        if shown.state in ENDED and (later := services.replacement_of(payment)) is not None:
            return _redirect(request, later.id)
        back = page_origins.return_url(merchant, request.GET.get("return_url", ""))
        context = _context(payment, shown, now) | {
            "return_url": back,
            "query": request.GET.urlencode(),
            "languages": payer_pages.language_links(**({} if back is None else {"return_url": back})),
        }
        policy = POLICY.format(ancestors=" ".join(merchant.page_origins) or "'none'")
        return payer_pages.respond(request, "qrcodes/pay.html", context, merchant=merchant, policy=policy)


@csrf_exempt  # the id is the secret; there is no cookie
def renew(request: HttpRequest, qr_code_id: str) -> HttpResponse:
    """Make another code in the place of one that ended unpaid, and lead to its page."""
    if request.method != "POST":
        return _redirect(request, qr_code_id)
    with translation.override(language_of(request)):
        try:
            _check_rate(request, "payment-renewal", RENEWAL_RATE)
            payment = _find(request, qr_code_id)
            if not page_settings.offers_new_code(payment.merchant_id):
                raise NotRenewable
            return _redirect(request, services.renew(payment, now=clock.now()).id)
        except (NotRenewable, BankNotConfigured, MerchantSuspended):
            return _redirect(request, qr_code_id)
        except ApiError as error:
            return payer_pages.refuse(request, "qrcodes/no_payment.html", error)


def _redirect(request: HttpRequest, qr_code_id: str) -> HttpResponse:
    """To the page of a code, with the language and the way back."""
    query = request.GET.urlencode()
    url = reverse("payment-page", args=[qr_code_id])
    return HttpResponseRedirect(f"{url}?{query}" if query else url, status=303)


@get_or_head_only
def state(request: HttpRequest, qr_code_id: str) -> HttpResponse:
    """The state as JSON, or 304 while it is what the page shows, with the seconds that are left."""
    now = clock.now()
    try:
        payment = _find(request, qr_code_id)
    except ApiError as error:
        return error_response(error, request)
    shown = shown_of(payment, now)
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


@get_or_head_only
def receipt(request: HttpRequest, qr_code_id: str) -> HttpResponse:
    """The receipt as a PNG. Without one, the page says why."""
    try:
        payment = _find(request, qr_code_id)
        if shown_of(payment, clock.now()).state not in PAID:
            return _redirect(request, qr_code_id)
        _check_rate(request, "payment-card", CARD_RATE)
        return qr_cards.respond_receipt(request, payment, language_of(request))
    except ApiError as error:
        return error_response(error, request)


@get_or_head_only
def logo(request: HttpRequest, version: str) -> HttpResponse:
    """A logo by its SHA-256, so that browsers may keep it for ever."""
    try:
        _check_rate(request, "payment-page", RATE)
    except TooManyPageRequests as error:
        return error_response(error, request)
    if (picture := page_settings.logo(version)) is None:
        return api.not_found(request)
    headers = {"Cache-Control": "public, max-age=31536000, immutable"}
    return HttpResponse(picture, content_type="image/png", headers=headers)


def check_open(payment: Payment, now: datetime) -> None:
    """Raises QrCodeGone unless the code waits for its money, and its shop may take it."""
    if (status := payment.status_at(now)) != PaymentStatus.PENDING:
        raise QrCodeGone(status=status)
    if payment.merchant.suspended_at is not None:
        raise QrCodeSuspended(status=PageState.SUSPENDED)


def check_payable(payment: Payment, now: datetime) -> None:
    """Raises QrCodeGone unless the code is open, and no other money arrived for it."""
    check_open(payment, now)
    if (shown := shown_of(payment, now)).state == PageState.REVIEW:
        raise QrCodeInReview(status=shown.state)


def _check_rate(request: HttpRequest, name: str, rate: RateLimit) -> None:
    """Raises TooManyPageRequests."""
    network = client_addresses.network_of(client_addresses.address_of(request), ipv6_bits=64)
    rate_limits.check(f"{name}:{network}", rate, TooManyPageRequests)


def _find(request: HttpRequest, qr_code_id: str) -> Payment:
    """The payment of the code. Raises TooManyPageRequests, QrCodeNotFound."""
    _check_rate(request, "payment-page", RATE)
    payments = Payment.objects.select_related("merchant").filter(qr_code_id=qr_code_id)
    return ids.find(qr_code_id, "qr_", payments, QrCodeNotFound, key=ids.of_payment(qr_code_id))


def shown_of(payment: Payment, now: datetime) -> ShownState:
    """What a page says about the payment at `now`."""
    status = payment.status_at(now)
    held = 0
    if payment.has_exceptions:
        found = payment.exceptions.filter(status__in=(*HELD_STATUSES, *HELD_EXCESS_STATUSES))
        held = sum(exception.held_amount for exception in found)
    if not held:
        if status == PaymentStatus.PENDING and payment.merchant.suspended_at is not None:
            return ShownState(PageState.SUSPENDED)
        return ShownState(PageState.PAID if status == PaymentStatus.SUCCEEDED else PageState(status))
    return ShownState(PageState.EXCESS if payment.completed_at is not None else PageState.REVIEW, held)


def may_change(payment: Payment, shown: ShownState, now: datetime) -> bool:
    """Whether a page that shows this state must ask again."""
    if shown.state == PageState.EXPIRED and payment.expires_at is not None:
        return now - payment.expires_at < ASKS_AFTER_EXPIRY
    return shown.state in (PageState.PENDING, PageState.REVIEW, PageState.SUSPENDED)


def _seconds_left(expires_at: datetime, now: datetime) -> int:
    return max(0, int((expires_at - now).total_seconds()))


def _context(payment: Payment, shown: ShownState, now: datetime) -> dict[str, Any]:
    expires_at = payment.expires_at or now
    is_open = shown.state == PageState.PENDING
    paid_at = payment.completed_at
    return {
        "payment": payment,
        "amount": money.with_sign(payment.amount),
        "held_amount": money.with_sign(shown.held_amount),
        "state": shown.state,
        "etag": shown.etag,
        "seconds_left": _seconds_left(expires_at, now),
        "pay_before": clock.display_to_payer(expires_at),
        "paid_at": paid_at and clock.display_to_payer(paid_at),
        "has_receipt": shown.state in PAID,
        "is_renewable": shown.state in ENDED and services.is_renewable(payment, now),
        "is_open": is_open,
        "may_change": may_change(payment, shown, now),
        "has_sandbox_bank": payment.merchant.mode == Mode.TEST and bool(settings.SANDBOX_BANK_SECRET),
    }
