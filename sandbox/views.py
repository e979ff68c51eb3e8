"""The sandbox bank's doors: the API for merchants' tests, and a page that plays the customer's bank app."""

from typing import Any

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.views import View
from rest_framework.request import Request

from core import clock, ids, money
from core.api import read_body
from core.errors import Invalid
from core.http import Answer
from idempotency.services import Job
from idempotency.views import idempotent
from merchants.api import MerchantViewSet, merchant_of
from merchants.models import Mode
from sandbox import openapi as docs
from sandbox import services, shapes
from sandbox.errors import TestModeOnly
from sandbox.models import SandboxPayment, State
from sandbox.scenarios import SCENARIOS
from sandbox.serializers import SandboxPaymentRequest

REQUEST = SandboxPaymentRequest()
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
            order = services.order(qr_data=qr_data, scenario=scenario, now=now)
        except Invalid as error:
            return _bank(request, qr_data, error)
        return redirect("sandbox-bank-payment", services.carry_out(order, now=now).id)


class BankPayment(BankPage):
    """What became of a payment, and of the calls that tell the service."""

    def get(self, request: HttpRequest, payment_id: str) -> HttpResponse:
        if not ids.looks_right(payment_id, "sbp_"):
            raise Http404
        payment = get_object_or_404(SandboxPayment, pk=payment_id)
        calls = list(payment.calls.order_by("id"))
        is_waiting = any(call.state == State.WAITING for call in calls)
        context = {"payment": payment, "calls": calls, "is_waiting": is_waiting}
        return render(request, "sandbox/payment.html", context)


def check_open() -> None:
    """Raises Http404 where this deployment has no sandbox bank."""
    if not settings.SANDBOX_BANK_SECRET:
        raise Http404


def check_test_key(request: Request) -> None:
    """Raises TestModeOnly."""
    if merchant_of(request).mode != Mode.TEST:
        raise TestModeOnly()


def _bank(request: HttpRequest, qr_data: str, error: Invalid | None = None) -> HttpResponse:
    context: dict[str, Any] = {"qr_data": qr_data, "scenarios": SCENARIOS.values(), "error": error}
    if qr_data and not error:
        try:
            payload = services.read(qr_data)
            amount = money.display(payload.amount or 0)
            context |= {"payload": payload, "shop": payload.value("59"), "amount": amount}
        except Invalid as unreadable:
            context["error"] = unreadable
    return render(request, "sandbox/bank.html", context, status=400 if context["error"] else 200)
