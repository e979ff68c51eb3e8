from collections.abc import Callable
from typing import Any

from rest_framework.request import Request

from core import clock, ids
from core.database import rows
from core.http import api
from core.http.openapi import Operation
from core.http.paging import page_response
from core.http.responses import ApiResponse
from idempotency.services import Job
from idempotency.views import idempotent
from merchants.api import MerchantViewSet, merchant_of
from merchants.authentication import ReadWithKey
from payments import openapi as payment_docs, shapes
from payments.errors import PaymentNotFound
from payments.models import Payment
from reconciliation.exceptions import merchant_decisions, openapi as docs, unmatched_money


class PaymentDetailViewSet(MerchantViewSet):
    """Read a payment, with money of its amount whose reference is unknown."""

    reads_with_key = {
        "retrieve": ReadWithKey(
            f"{rows.columns(Payment, 'p')}, {unmatched_money.IS_POSSIBLE}",
            "LEFT JOIN payments_payment p ON p.id = %s AND p.merchant_id = m.id",
            # PostgreSQL would refuse some texts that are no ids.
            lambda arguments: [found if ids.looks_right(found := arguments["payment_id"], "pay_") else None],
        )
    }

    @payment_docs.retrieve
    def retrieve(self, request: Request, payment_id: str) -> shapes.PaymentObject:
        *values, is_possible = self.read
        if values[0] is None:
            raise PaymentNotFound(id=payment_id)
        payment = rows.instance(Payment, values)
        payment.merchant = merchant_of(request)
        found = unmatched_money.find(payment) if is_possible else []
        shown = shapes.payment_object(payment, clock.now())
        shown["unmatched_money"] = (
            shapes.unmatched_money_object(found[0].id, found[0].received_at) if found else None
        )
        return shown


class PaymentExceptionViewSet(MerchantViewSet):
    """Read the exceptions of a payment, and decide about them."""

    @docs.list_
    def list(self, request: Request, payment_id: str) -> ApiResponse:
        query = api.read_query(docs.list_, request)
        payment = Payment.objects.of(merchant_of(request)).find(payment_id)
        found, start = payment.exceptions.order_by("-reported_at", "-id"), query["offset"]
        shown = [shapes.exception_object(each) for each in found[start : start + query["limit"]]]
        return page_response(shown, found.count(), query, "exceptions")

    @docs.accept
    @idempotent
    def accept(self, request: Request, payment_id: str, exception_id: str) -> Job:
        return _job(request, docs.accept, merchant_decisions.accept, payment_id, exception_id)

    @docs.send_back
    @idempotent
    def send_back(self, request: Request, payment_id: str, exception_id: str) -> Job:
        return _job(request, docs.send_back, merchant_decisions.send_back, payment_id, exception_id)


def _job(request: Request, operation: Operation, decide: Callable[..., Any], *keys: str) -> Job:
    fields, merchant, now = api.read_body(operation, request), merchant_of(request), clock.now()

    def work() -> shapes.PaymentExceptionObject:
        return shapes.exception_object(decide(merchant_decisions.find(merchant, *keys), now=now, **fields))

    return work
