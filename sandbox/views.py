"""The sandbox bank's doors: the API for merchants' tests, and a page that plays the customer's bank app."""

import re
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.views import View
from rest_framework.request import Request

from core import addresses, clock, ids, money, rates
from core.api import read_body
from core.errors import Invalid
from core.http import Answer
from core.rates import Rate
from idempotency.services import Job
from idempotency.views import idempotent
from merchants.api import MerchantViewSet, merchant_of
from merchants.errors import RateLimitExceeded
from merchants.models import Mode
from sandbox import openapi as docs
from sandbox import scenarios, services, shapes, slips
from sandbox.errors import InvalidPaidAt, InvalidReportAt, InvalidScenario, TestModeOnly
from sandbox.models import EntryType, SandboxPayment, State
from sandbox.scenarios import SCENARIOS
from sandbox.serializers import SandboxPaymentRequest

REQUEST = SandboxPaymentRequest()
MINUTES = re.compile("-?[0-9]{1,6}")
TIMES = {"paid_in": InvalidPaidAt, "report_in": InvalidReportAt}
# How often one address may pay on the page, which asks for no key: a person does not pay faster.
RATE = Rate(per_second=0.2, burst=20)
# A page that waits for a call asks again; for one that is due tomorrow it does not.
SOON = timedelta(minutes=1)
PAGE_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)


class SandboxPaymentViewSet(MerchantViewSet):
    """Pay a QR code at the sandbox bank, well or badly."""

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        check_open()
        super().initial(request, *args, **kwargs)

    @docs.create
    @idempotent
    def create(self, request: Request) -> Job:
        check_test_key(request)
        now = clock.now()
        order = services.order(**read_body(REQUEST, request), now=now)
        return lambda: Answer.of(shapes.accepted(services.carry_out(order, now=now)))


class BankPage(View):
    """Paste a code, see what a bank app shows of it, and choose what happens. Open to anybody."""

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        check_open()
        response = super().dispatch(request, *args, **kwargs)
        response.headers["Content-Security-Policy"] = PAGE_POLICY
        response.headers["Cache-Control"] = "no-store"
        return response


class Bank(BankPage):
    def get(self, request: HttpRequest) -> HttpResponse:
        return _bank(request, request.GET.get("qr_data", "").strip())

    def post(self, request: HttpRequest) -> HttpResponse:
        qr_data = request.POST.get("qr_data", "").strip()
        scenario = "declined" if "decline" in request.POST else request.POST.get("scenario", "paid")
        now = clock.now()
        try:
            _count(request)
            services.read_known(qr_data)
            if scenarios.named(scenario).needs_key:
                raise InvalidScenario("This scenario needs a test key.", param="scenario")
            times = {"paid_at": _time(request, "paid_in", now), "report_at": _time(request, "report_in", now)}
            order = services.order(qr_data=qr_data, scenario=scenario, now=now, **times)
        except (Invalid, RateLimitExceeded) as error:
            return _bank(request, qr_data, error)
        return redirect("sandbox-bank-payment", services.carry_out(order, now=now).id)


class BankPayment(BankPage):
    """What became of a payment, its slip, and the calls that tell the service."""

    def get(self, request: HttpRequest, payment_id: str) -> HttpResponse:
        if not ids.looks_right(payment_id, "sbp_"):
            raise Http404
        payment, now = get_object_or_404(SandboxPayment, pk=payment_id), clock.now()
        calls = list(payment.calls.order_by("id"))
        entries = set(payment.entries.filter(booked_at__lte=now).values_list("type", flat=True))
        is_declined = payment.scenario == "declined"
        context = {
            "payment": payment,
            "calls": calls,
            "is_waiting": any(call.state == State.WAITING and call.due_at - now < SOON for call in calls),
            "is_declined": is_declined,
            "is_reversed": EntryType.REVERSAL in entries,
            "slip": None if is_declined else slips.mini_qr(payment),
            "others": services.ordered_with(payment),
        }
        return render(request, "sandbox/payment.html", context)


def check_open() -> None:
    """Raises Http404 where this deployment has no sandbox bank."""
    if not settings.SANDBOX_BANK_SECRET:
        raise Http404


def check_test_key(request: Request) -> None:
    """Raises TestModeOnly."""
    if merchant_of(request).mode != Mode.TEST:
        raise TestModeOnly()


def _time(request: HttpRequest, name: str, now: datetime) -> datetime | None:
    """The instant so many minutes from now; None where the page left it to the scenario."""
    text = request.POST.get(name, "").strip()
    if text and not MINUTES.fullmatch(text):
        raise TIMES[name]("Give whole minutes from now, within a year.")
    return now + timedelta(minutes=int(text)) if text else None


def _count(request: HttpRequest) -> None:
    """Raises RateLimitExceeded. Without Redis the limit of each code remains."""
    network = addresses.network_of(addresses.address_of(request), ipv6_bits=64)
    room = rates.take(f"sandbox-page:{network}", RATE)
    if room is not None and not room.allowed:
        message = f"Too many payments from this address. Try again in {room.retry_after} s."
        raise RateLimitExceeded(message, retry_after=room.retry_after)


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
            payload = services.read_known(qr_data)
            amount = money.display(payload.amount or 0)
            context |= {"payload": payload, "shop": payload.value("59"), "amount": amount}
        except Invalid as unreadable:
            context["error"] = error or unreadable
    error = context["error"]
    response = render(request, "sandbox/bank.html", context, status=error.status if error else 200)
    if error and error.retry_after:
        response.headers["Retry-After"] = str(error.retry_after)
    return response
