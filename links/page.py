"""The page of a payment link: what to pay, and the button that makes the visitor's code.

It needs no key: nobody can guess the id of a link. A signed cookie tells visitors apart. It says nothing
about them, and the browser sends it to the page of this link alone.
"""

from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from django import forms
from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils import translation
from django.utils.translation import gettext as _
from django.views.decorators.csrf import csrf_exempt

from core import clock, ids, money, request_context
from core.console.form_fields import BahtField
from core.errors import ApiError, MethodNotAllowed
from core.http import api, client_addresses, rate_limits
from core.http.rate_limits import RateLimit
from links import services
from links.errors import PaymentLinkNotActive
from links.models import LONGEST_LIFE, VISITOR_LENGTH, LinkCode, PaymentLink, PaymentLinkStatus
from merchants import payer_pages
from merchants.payer_pages import language_of
from payments.models import HELD_STATUSES, PAID_STATUSES, Payment, PaymentStatus
from qrcodes.errors import QrCodeNotExpirable, TooManyPageRequests
from qrcodes.payment_page import RATE

# Codes that visitors of one network make, and those of all visitors of a link.
NETWORK_RATE = RateLimit(per_second=0.5, burst=60)
LINK_RATE = RateLimit(per_second=5, burst=200)
METHODS = ("GET", "HEAD", "POST")
COOKIE = "visitor"
CHANGE = "change"  # in the query: the visitor wants another amount than the open code has
POLICY = "form-action 'self'; frame-ancestors 'none'"


class AmountForm(forms.Form):
    """The amount that the visitor chooses, in baht. Satang once it is valid."""

    def __init__(self, link: PaymentLink, data: Any = None) -> None:
        super().__init__(data, label_suffix="")
        smallest, largest = link.amount_min or 0, link.amount_max or 0
        named = {"min": money.with_sign(smallest), "max": money.with_sign(largest)}
        limits = _("From %(min)s to %(max)s.") % named
        self.fields["amount"] = BahtField(
            smallest=smallest,
            largest=largest,
            label=_("Amount in baht"),
            help_text=limits,
            error_messages={"required": BahtField.wrong, "limits": limits},
        )


@csrf_exempt  # `_is_of_another_site` decides: a token would need a cookie
def page(request: HttpRequest, payment_link_id: str) -> HttpResponse:
    if request.method not in METHODS:
        response = api.error_response(MethodNotAllowed(method=request.method), request)
        response.headers["Allow"] = ", ".join(METHODS)
        return response
    with translation.override(language_of(request)):
        try:
            return _respond(request, payment_link_id, clock.now())
        except ApiError as error:
            context = {"error": error}
            response = payer_pages.respond(request, "links/no_link.html", context, status=error.status)
            if error.retry_after is not None:
                response.headers["Retry-After"] = str(error.retry_after)
            return response


def _respond(request: HttpRequest, payment_link_id: str, now: datetime) -> HttpResponse:
    """Raises TooManyPageRequests, PaymentLinkNotFound, MerchantSuspended, BankNotConfigured."""
    network = client_addresses.network_of(client_addresses.address_of(request), ipv6_bits=64)
    rate_limits.check(f"payment-page:{network}", RATE, TooManyPageRequests)
    link = services.find(payment_link_id)
    if request.method == "POST" and _is_of_another_site(request):
        return _lead_to_page(link)
    known = request.get_signed_cookie(COOKIE, "", salt=link.id)
    visitor = known or ids.random_text(VISITOR_LENGTH)
    latest = services.latest_code(link, known) if known else None
    status = link.status_at(now)
    given = request.POST if request.method == "POST" else None
    form = AmountForm(link, given) if link.amount is None else None
    changed = latest if CHANGE in request.GET and _may_change(link, latest, status, now) else None
    if latest is not None and changed is None and _is_to_be_seen(latest, status, now):
        return _show_code(latest.payment.qr_code_id)
    link.merchant.check_open()
    is_refused = status != PaymentLinkStatus.ACTIVE or (form is not None and not form.is_valid())
    if given is None or is_refused:
        response = _show(request, link, status, form, latest)
    else:
        rate_limits.check(f"link-visitors:{network}", NETWORK_RATE, TooManyPageRequests)
        rate_limits.check(f"link:{link.id}", LINK_RATE, TooManyPageRequests)
        amount: Any = link.amount if form is None else form.cleaned_data["amount"]
        request_context.set_actor(f"link:{link.id}")
        try:
            if changed is None:
                payment = services.pay(link, visitor=visitor, amount=amount, now=now)
            else:
                payment = services.change_amount(link, code=changed, amount=amount, now=now)
            response = _show_code(payment.qr_code_id)
        except QrCodeNotExpirable:  # it was paid meanwhile, or another request changed it
            return _lead_to_page(link)
        except PaymentLinkNotActive as refusal:
            response = _show(request, link, str(refusal.context["status"]), form, latest)
    if not known and response.status_code < 400:
        _set_cookie(response, link, visitor)
    return response


def _is_of_another_site(request: HttpRequest) -> bool:
    """Whether the form of another site was sent. Without the cookie, its visitor would become a new one."""
    return request.headers.get("Sec-Fetch-Site") == "cross-site"


def _is_to_be_seen(latest: LinkCode, status: PaymentLinkStatus, now: datetime) -> bool:
    """Whether the visitor sees the page of that code: it is open, it has ended the link, or money waits."""
    payment = latest.payment
    if payment.status in PAID_STATUSES:
        return status != PaymentLinkStatus.ACTIVE
    return payment.status_at(now) == PaymentStatus.PENDING or _has_held_money(payment)


def _may_change(link: PaymentLink, latest: LinkCode | None, status: PaymentLinkStatus, now: datetime) -> bool:
    """Whether the visitor may end the open code to choose another amount: no money arrived for it."""
    return (
        link.amount is None
        and status == PaymentLinkStatus.ACTIVE
        and latest is not None
        and latest.payment.status_at(now) == PaymentStatus.PENDING
        and not _has_held_money(latest.payment)
    )


def _has_held_money(payment: Payment) -> bool:
    return payment.exceptions.filter(status__in=HELD_STATUSES).exists()


def _address(link: PaymentLink) -> str:
    return reverse("payment-link-page", args=[link.id])


def _lead_to_page(link: PaymentLink) -> HttpResponse:
    return HttpResponseRedirect(f"{_address(link)}?lang={translation.get_language()}", status=303)


def _show_code(qr_code_id: str | None) -> HttpResponse:
    chosen = urlencode({"lang": translation.get_language()})
    return HttpResponseRedirect(f"{reverse('payment-page', args=[qr_code_id])}?{chosen}", status=303)


def _set_cookie(response: HttpResponse, link: PaymentLink, visitor: str) -> None:
    response.set_signed_cookie(
        COOKIE,
        visitor,
        salt=link.id,
        path=_address(link),
        max_age=LONGEST_LIFE,
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Lax",
    )


def _show(
    request: HttpRequest, link: PaymentLink, state: str, form: AmountForm | None, latest: LinkCode | None
) -> HttpResponse:
    is_active = state == PaymentLinkStatus.ACTIVE
    kept = {CHANGE: "1"} if CHANGE in request.GET else {}
    context = {
        "state": state,
        "link": link,
        "form": form,
        "paid": latest.payment if latest is not None and latest.payment.status in PAID_STATUSES else None,
        "amount": money.with_sign(link.amount) if link.amount is not None else "",
        "reference": link.reference,
        "until": clock.display_to_payer(link.expires_at),
        "query": urlencode({"lang": translation.get_language()} | kept),
        "is_change": bool(kept),
        "languages": payer_pages.language_links(**kept),
    }
    is_wrong = is_active and form is not None and bool(form.errors)
    status = 422 if is_wrong else 200 if is_active else 410
    return payer_pages.respond(
        request, "links/link.html", context, merchant=link.merchant, policy=POLICY, status=status
    )
