"""The sandbox bank for merchants: an API to pay codes, and pages that simulate the customer's banking app."""

import re
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.shortcuts import get_object_or_404, redirect, render
from django.views import View
from rest_framework.request import Request

from core import clock, ids, money
from core.drawing import qr_symbols
from core.errors import ApiError, Invalid
from core.http import api, client_addresses, rate_limits
from core.http.rate_limits import RateLimit
from core.thai.slips import Slip, slip_payload
from idempotency.services import Job
from idempotency.views import idempotent
from merchants.api import MerchantViewSet, merchant_of
from merchants.errors import RateLimitExceeded
from merchants.models import Mode
from sandbox import cards, openapi as docs, scenarios, services
from sandbox.errors import InvalidMinutes, ScenarioNeedsKey, TestModeOnly, TooManyPayments
from sandbox.models import CallbackState, SandboxCharge, SandboxEntryType, SandboxPayment
from sandbox.scenarios import SCENARIOS
from sandbox.shapes import SandboxPaymentObject

MINUTES = re.compile("-?[0-9]{1,6}")
# The rate limit of one network on the page, which needs no API key.
PAGE_RATE = RateLimit(per_second=0.2, burst=20)
# The payment page refreshes itself while a callback is due within this time.
REFRESH_WITHIN = timedelta(minutes=1)
PAGE_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)


class SandboxViewSet(MerchantViewSet):
    """For keys of test merchants, in a deployment that has the sandbox bank."""

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        check_enabled()
        super().initial(request, *args, **kwargs)
        if self.action is not None and merchant_of(request).mode != Mode.TEST:
            raise TestModeOnly()


class SandboxPaymentViewSet(SandboxViewSet):
    """Pay a QR code at the sandbox bank with a scenario."""

    @docs.create
    @idempotent
    def create(self, request: Request) -> Job:
        now = clock.now()
        order = services.plan(**api.read_body(docs.create, request), now=now)

        def pay() -> SandboxPaymentObject:
            payment = services.execute(order, now=now)
            return {"bank_transaction_id": payment.id, "scenario": payment.scenario, "accepted": True}

        return pay


class BankPage(View):
    """A page of the simulated banking app. It needs no login and no API key."""

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        check_enabled()
        response = super().dispatch(request, *args, **kwargs)
        response.headers["Content-Security-Policy"] = PAGE_POLICY
        response.headers["Cache-Control"] = "no-store"
        return response


class BankHomePage(BankPage):
    def get(self, request: HttpRequest) -> HttpResponse:
        return _bank(request, request.GET.get("qr_data", "").strip())

    def post(self, request: HttpRequest) -> HttpResponse:
        qr_data = request.POST.get("qr_data", "").strip()
        scenario = "declined" if "decline" in request.POST else request.POST.get("scenario", "paid")
        now = clock.now()
        try:
            # Without Redis only the limit of each code applies.
            network = client_addresses.network_of(client_addresses.address_of(request), ipv6_bits=64)
            rate_limits.check(f"sandbox-page:{network}", PAGE_RATE, TooManyPayments)
            services.parse_known_qr(qr_data)
            if scenarios.find(scenario).has_unknown_reference:
                raise ScenarioNeedsKey(param="scenario")
            times = {
                "paid_at": _offset_time(request, "paid_in", now),
                "report_at": _offset_time(request, "report_in", now),
            }
            order = services.plan(qr_data=qr_data, scenario=scenario, now=now, **times)
            payment = services.execute_without_key(order, now=now)
        except (Invalid, RateLimitExceeded) as error:
            return _bank(request, qr_data, error)
        return redirect("sandbox-bank-payment", payment.id)


class BankPaymentPage(BankPage):
    """A payment with its slip and callbacks."""

    def get(self, request: HttpRequest, payment_id: str) -> HttpResponse:
        payment, now = get_object_or_404(SandboxPayment, pk=_checked(payment_id, "sbp_")), clock.now()
        callbacks = list(payment.callbacks.order_by("id"))
        entries = set(payment.entries.filter(booked_at__lte=now).values_list("type", flat=True))
        is_declined = payment.scenario == "declined"
        context = {
            "payment": payment,
            "callbacks": callbacks,
            "is_waiting": any(
                callback.state == CallbackState.WAITING and callback.due_at - now < REFRESH_WITHIN
                for callback in callbacks
            ),
            "is_declined": is_declined,
            "is_reversed": SandboxEntryType.REVERSAL in entries,
            "slip": None if is_declined else _mini_qr(payment),
            "others": services.paid_together(payment),
        }
        return render(request, "sandbox/payment.html", context)


def check_enabled() -> None:
    """Raises Http404 if this deployment has no sandbox bank."""
    if not settings.SANDBOX_BANK_SECRET:
        raise Http404


def _offset_time(request: HttpRequest, name: str, now: datetime) -> datetime | None:
    """The instant that many minutes from now, or None if the field is empty."""
    text = request.POST.get(name, "").strip()
    if text and not MINUTES.fullmatch(text):
        raise InvalidMinutes()
    return now + timedelta(minutes=int(text)) if text else None


def _mini_qr(payment: SandboxPayment) -> dict[str, Any]:
    """The mini-QR on the slip. size: modules on a side. path: the dark modules as an SVG path."""
    payload = slip_payload(Slip(payment.payer_bank_code, payment.slip_reference))
    rows = qr_symbols.modules(payload)
    dark = (f"M{x} {y}h1v1h-1z" for y, row in enumerate(rows) for x, is_dark in enumerate(row) if is_dark)
    return {"payload": payload, "size": len(rows), "path": "".join(dark)}


def _bank(request: HttpRequest, qr_data: str, error: ApiError | None = None) -> HttpResponse:
    context: dict[str, Any] = {
        "qr_data": qr_data,
        "scenarios": {name: each for name, each in SCENARIOS.items() if not each.has_unknown_reference},
        "error": error,
        "chosen": request.POST,
    }
    if qr_data:
        try:
            payload = services.parse_known_qr(qr_data)
            amount = money.display(payload.amount or 0)
            context |= {"payload": payload, "amount": amount}
        except Invalid as unreadable:
            context["error"] = error or unreadable
    error = context["error"]
    response = render(request, "sandbox/bank.html", context, status=error.status if error else 200)
    if error and error.retry_after:
        response.headers["Retry-After"] = str(error.retry_after)
    return response


class CardAuthorizationPage(BankPage):
    def get(self, request: HttpRequest, charge_id: str) -> HttpResponse:
        charge, now = get_object_or_404(SandboxCharge, pk=_checked(charge_id, "sbc_")), clock.now()
        is_open = charge.is_authorizable_at(now)
        context = {"charge": charge, "is_authorizable": is_open, "status": charge.status_at(now)}
        return render(request, "sandbox/card.html", context)

    def post(self, request: HttpRequest, charge_id: str) -> HttpResponse:
        """Store the decision, and send the browser back to the service, which then inquires the charge."""
        is_authorized = "refuse" not in request.POST
        charge = cards.authorize(_checked(charge_id, "sbc_"), is_authorized=is_authorized, now=clock.now())
        if charge is None:
            raise Http404
        return HttpResponseRedirect(charge.return_uri or request.path)


def _checked(object_id: str, prefix: str) -> str:
    if not ids.looks_right(object_id, prefix):
        raise Http404
    return object_id
