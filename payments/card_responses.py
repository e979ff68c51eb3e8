"""Responses about card payments: of the API, and the page to which 3-D Secure sends the payer back."""

from collections.abc import Callable
from datetime import datetime

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.utils import translation

from banks import ChargeResult
from core import clock, ids, money
from core.errors import ApiError, Invalid
from core.http.api import get_or_head_only
from core.http.responses import ApiResponse, error_response
from idempotency.errors import IdempotencyKeyInProgress
from idempotency.services import TwoPhaseJob
from merchants import payer_pages
from payments import cards, errors, usual_amounts
from payments.cards import Purchase
from payments.models import Payment, PaymentStatus
from payments.shapes import payment_object

DECLINES: dict[str, Callable[[], ApiError]] = {
    "insufficient_funds": errors.CardInsufficientFunds,
    "card_declined": errors.CardDeclined,
    "expired_card": errors.ExpiredCard,
    "processing_error": errors.ProcessingError,
}


def job(purchase: Purchase, now: Callable[[], datetime]) -> TwoPhaseJob[ChargeResult]:
    """Return the request as two commits with the call between them."""
    payment_id = purchase.payment.id
    headers = usual_amounts.warning_headers(purchase.payment.merchant, purchase.payment.amount)

    def finish(result: ChargeResult) -> ApiResponse:
        at = now()
        payment = cards.complete(payment_id, result, now=at)
        return error_response(_refusal(result)) if payment is None else answer(payment, at, headers)

    return TwoPhaseJob(
        subject_id=payment_id,
        seconds=purchase.acquirer.seconds,
        admit=lambda held: held.enter_context(cards.slot(purchase)),
        prepare=lambda: cards.store(purchase),
        perform=lambda: cards.request_charge(purchase),
        finish=finish,
        resume=lambda found_id: _current_answer(found_id, now()),
    )


def answer(payment: Payment, now: datetime, headers: dict[str, str] | None = None) -> ApiResponse:
    """Return the payment, or a 402 with its id if it failed."""
    if payment.status != PaymentStatus.FAILED:
        return ApiResponse.of(payment_object(payment, now), headers=headers)
    declined = DECLINES[str(payment.failure_code)]()
    declined.extra["payment_id"] = payment.id
    return error_response(declined)


def _current_answer(payment_id: str, now: datetime) -> ApiResponse:
    payment = Payment.objects.filter(pk=payment_id).first()
    if payment is None:  # its token was refused a moment ago, after this request stopped waiting
        raise IdempotencyKeyInProgress(retry_after=1)
    return answer(payment, now)


def _refusal(result: ChargeResult) -> Invalid:
    if result.failure_code == "token_already_used":
        return errors.TokenAlreadyUsed(param="token_id")
    return errors.InvalidTokenId(
        param="token_id", detail="is not known to the acquirer", received="another string"
    )


@get_or_head_only
def return_page(request: HttpRequest, payment_id: str) -> HttpResponse:
    """Show the status of the payment, and schedule an inquiry while it is pending.

    The request is not trusted: anybody can open this address.
    """
    if not ids.looks_right(payment_id, "pay_"):
        raise Http404
    card_payments = Payment.objects.filter(qr_code_id=None).select_related("merchant")
    payment = get_object_or_404(card_payments, pk=payment_id)
    is_pending = payment.status == PaymentStatus.PENDING
    if is_pending:
        cards.inquire_soon(payment.id, now=clock.now())
    is_paid = payment.status in (PaymentStatus.SUCCEEDED, PaymentStatus.REFUNDED)
    with translation.override(payer_pages.language_of(request)):
        context = {
            "payment": payment,
            "amount": money.with_sign(payment.amount),
            "paid_at": payment.completed_at and clock.display_to_payer(payment.completed_at),
            "state": "sending" if is_pending else "paid" if is_paid else "failed",
        }
        page = payer_pages.respond(request, "payments/card.html", context, merchant=payment.merchant)
    page.headers["Cache-Control"] = "no-store"
    return page
