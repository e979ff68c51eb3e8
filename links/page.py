"""The page of a payment link: what to pay, and the button that makes the visitor's code.

It needs no key: nobody can guess the id of a link. A signed cookie tells visitors apart. It says nothing
about them, and the browser sends it to the page of this link alone.
"""

from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from django import forms
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import translation
from django.utils.translation import gettext as _

from core import clock, ids, money, request_context
from core.console.form_fields import BahtField
from core.errors import ApiError
from core.http import client_addresses, rate_limits
from core.http.rate_limits import RateLimit
from links import services
from links.errors import PaymentLinkNotActive
from links.models import LONGEST_LIFE, VISITOR_LENGTH, LinkCode, PaymentLink, PaymentLinkStatus
from merchants import payer_pages
from payments.models import HELD_STATUSES, PAID_STATUSES, Payment, PaymentStatus
from qrcodes.errors import QrCodeNotExpirable, TooManyPageRequests
from qrcodes.payment_page import RATE

# Codes that visitors of one network make, and those of all visitors of a link.
NETWORK_RATE = RateLimit(per_second=0.5, burst=60)
LINK_RATE = RateLimit(per_second=5, burst=200)
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


@payer_pages.with_form
def page(request: HttpRequest, payment_link_id: str) -> HttpResponse:
    try:
        return _respond(request, payment_link_id, clock.now())
    except ApiError as error:
        return payer_pages.refuse(request, "links/no_link.html", error)


def _respond(request: HttpRequest, payment_link_id: str, now: datetime) -> HttpResponse:
    """Raises TooManyPageRequests, PaymentLinkNotFound, MerchantSuspended, BankNotConfigured."""
    network = client_addresses.network_of(client_addresses.address_of(request), ipv6_bits=64)
    rate_limits.check(f"payment-page:{network}", RATE, TooManyPageRequests)
    link = services.find(payment_link_id)
    # The form of another site comes without the cookie: its visitor would become a new one.
    if request.method == "POST" and request.headers.get("Sec-Fetch-Site") == "cross-site":
        return payer_pages.lead_to("payment-link-page", link.id)
    known = request.get_signed_cookie(COOKIE, "", salt=link.id)
    visitor = known or ids.random_text(VISITOR_LENGTH)
    latest = services.latest_code(link, known) if known else None
    status = link.status_at(now)
    given = request.POST if request.method == "POST" else None
    form = AmountForm(link, given) if link.amount is None else None
    changed = latest if CHANGE in request.GET and _may_change(link, latest, status, now) else None
    if latest is not None and changed is None and _is_to_be_seen(latest, status, now):
        return payer_pages.lead_to("payment-page", str(latest.payment.qr_code_id))
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
            response = payer_pages.lead_to("payment-page", str(payment.qr_code_id))
        except QrCodeNotExpirable:  # it was paid meanwhile, or another request changed it
            return payer_pages.lead_to("payment-link-page", link.id)
        except PaymentLinkNotActive as refusal:
            response = _show(request, link, str(refusal.context["status"]), form, latest)
    if not known and response.status_code < 400:
        response.set_signed_cookie(
            COOKIE,
            visitor,
            salt=link.id,
            path=reverse("payment-link-page", args=[link.id]),
            max_age=LONGEST_LIFE,
            secure=settings.SESSION_COOKIE_SECURE,
            httponly=True,
            samesite="Lax",
        )
    return response


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
