"""The page to which the payer's browser comes back from 3-D Secure."""

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render

from core import clock, ids, money
from core.api import get_or_head_only
from payments import cards
from payments.models import Payment, PaymentStatus

PAGE_POLICY = (
    "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; frame-ancestors 'none'; "
    "form-action 'none'"
)


@get_or_head_only
def return_page(request: HttpRequest, payment_id: str) -> HttpResponse:
    """Shows how the payment stands, and has the acquirer asked while it is pending.

    What the browser says is not read: anybody can open this address.
    """
    payment, now = _card_payment(payment_id), clock.now()
    is_pending = payment.status == PaymentStatus.PENDING
    if is_pending:
        cards.inquire_soon(payment.id, now=now)
    context = {
        "payment": payment,
        "shop": payment.merchant.name,
        "amount": money.display(payment.amount),
        "is_pending": is_pending,
        "is_paid": payment.status in (PaymentStatus.SUCCEEDED, PaymentStatus.REFUNDED),
    }
    page = render(request, "payments/card.html", context)
    page.headers["Content-Security-Policy"] = PAGE_POLICY
    page.headers["Cache-Control"] = "no-store"
    page.headers["Referrer-Policy"] = "no-referrer"
    return page


def _card_payment(payment_id: str) -> Payment:
    found: Payment | None = None
    if ids.looks_right(payment_id, "pay_"):
        cards_only = Payment.objects.filter(qr_code_id=None).select_related("merchant")
        found = cards_only.filter(pk=payment_id).first()
    if found is None:
        raise Http404
    return found
