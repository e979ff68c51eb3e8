"""The sandbox bank's doors: the API for merchants' tests, and a page that plays the customer's bank app."""

import re
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.shortcuts import get_object_or_404, redirect, render
from django.views import View
from rest_framework.request import Request

from core import addresses, clock, ids, money, rate_limits
from core.api import read_body
from core.errors import Invalid
from core.http import ApiResponse
from core.rate_limits import RateLimit
from idempotency.services import Job
from idempotency.views import idempotent
from merchants.api import MerchantViewSet, merchant_of
from merchants.errors import RateLimitExceeded
from merchants.models import Mode
from sandbox import cards, scenarios, services, shapes, slips
from sandbox import openapi as docs
from sandbox.errors import InvalidPaidAt, InvalidReportAt, InvalidScenario, TestModeOnly
from sandbox.models import CallbackState, SandboxCharge, SandboxEntryType, SandboxPayment
from sandbox.scenarios import SCENARIOS
from sandbox.serializers import SandboxPaymentRequest

REQUEST = SandboxPaymentRequest()
MINUTES = re.compile("-?[0-9]{1,6}")
TIME_ERRORS = {"paid_in": InvalidPaidAt, "report_in": InvalidReportAt}
# How often one address may pay on the page, which asks for no key: a person does not pay faster.
PAGE_RATE = RateLimit(per_second=0.2, burst=20)
# A page that waits for a call asks again; for one that is due tomorrow it does not.
REFRESH_WITHIN = timedelta(minutes=1)
PAGE_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)


class SandboxPaymentViewSet(MerchantViewSet):
    """Pay a QR code at the sandbox bank, well or badly."""

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        check_enabled()
        super().initial(request, *args, **kwargs)

    @docs.create
    @idempotent
    def create(self, request: Request) -> Job:
        check_test_key(request)
        now = clock.now()
        order = services.plan(**read_body(REQUEST, request), now=now)
        return lambda: ApiResponse.of(shapes.payment_object(services.execute(order, now=now)))


class BankPage(View):
    """Paste a code, see what a bank app shows of it, and choose what happens. Open to anybody."""

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
            _check_rate(request)
            services.parse_known_qr(qr_data)
            if scenarios.find(scenario).needs_key:
                raise InvalidScenario("This scenario needs a test key.", param="scenario")
            times = {
                "paid_at": _offset_time(request, "paid_in", now),
                "report_at": _offset_time(request, "report_in", now),
            }
            order = services.plan(qr_data=qr_data, scenario=scenario, now=now, **times)
        except (Invalid, RateLimitExceeded) as error:
            return _bank(request, qr_data, error)
        return redirect("sandbox-bank-payment", services.execute(order, now=now).id)


class BankPaymentPage(BankPage):
    """What became of a payment, its slip, and the calls that tell the service."""

    def get(self, request: HttpRequest, payment_id: str) -> HttpResponse:
        if not ids.looks_right(payment_id, "sbp_"):
            raise Http404
        payment, now = get_object_or_404(SandboxPayment, pk=payment_id), clock.now()
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
            "slip": None if is_declined else slips.mini_qr(payment),
            "others": services.paid_together(payment),
        }
        return render(request, "sandbox/payment.html", context)


def check_enabled() -> None:
    """Raises Http404 where this deployment has no sandbox bank."""
    if not settings.SANDBOX_BANK_SECRET:
        raise Http404


def check_test_key(request: Request) -> None:
    """Raises TestModeOnly."""
    if merchant_of(request).mode != Mode.TEST:
        raise TestModeOnly()


def _offset_time(request: HttpRequest, name: str, now: datetime) -> datetime | None:
    """The instant so many minutes from now; None where the page left it to the scenario."""
    text = request.POST.get(name, "").strip()
    if text and not MINUTES.fullmatch(text):
        raise TIME_ERRORS[name]("Give whole minutes from now, within a year.")
    return now + timedelta(minutes=int(text)) if text else None


def _check_rate(request: HttpRequest) -> None:
    """Raises RateLimitExceeded. Without Redis the limit of each code remains."""
    network = addresses.network_of(addresses.address_of(request), ipv6_bits=64)
    limit = rate_limits.consume(f"sandbox-page:{network}", PAGE_RATE)
    if limit is not None and not limit.allowed:
        message = f"Too many payments from this address. Try again in {limit.retry_after} s."
        raise RateLimitExceeded(message, retry_after=limit.retry_after)


def _bank(
    request: HttpRequest, qr_data: str, error: Invalid | RateLimitExceeded | None = None
) -> HttpResponse:
    context: dict[str, Any] = {
        "qr_data": qr_data,
        "scenarios": [scenario for scenario in SCENARIOS.values() if not scenario.needs_key],
        "error": error,
        "chosen": request.POST,
    }
    if qr_data:
        try:
            payload = services.parse_known_qr(qr_data)
            amount = money.display(payload.amount or 0)
            context |= {"payload": payload, "shop": payload.value("59"), "amount": amount}
        except Invalid as unreadable:
            context["error"] = error or unreadable
    error = context["error"]
    response = render(request, "sandbox/bank.html", context, status=error.status if error else 200)
    if error and error.retry_after:
        response.headers["Retry-After"] = str(error.retry_after)
    return response


class CardAuthorizationPage(BankPage):
    def get(self, request: HttpRequest, charge_id: str) -> HttpResponse:
        charge = SandboxCharge.objects.filter(pk=_valid_charge_id(charge_id)).first()
        if charge is None:
            raise Http404
        now = clock.now()
        context = {"charge": charge, "waits": charge.is_authorizable_at(now), "status": charge.status_at(now)}
        return render(request, "sandbox/card.html", context)

    def post(self, request: HttpRequest, charge_id: str) -> HttpResponse:
        """Then the browser goes back to the service, which has to ask what became of it."""
        is_authorized = "refuse" not in request.POST
        charge = cards.authorize(_valid_charge_id(charge_id), is_authorized=is_authorized, now=clock.now())
        if charge is None:
            raise Http404
        return HttpResponseRedirect(charge.return_uri or request.path)


def _valid_charge_id(charge_id: str) -> str:
    if not ids.looks_right(charge_id, "sbc_"):
        raise Http404
    return charge_id
