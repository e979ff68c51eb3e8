from rest_framework.request import Request

from core import clock, ids
from core.http import api
from core.http.responses import ApiResponse
from merchants.api import MerchantViewSet, merchant_of
from merchants.models import Merchant
from payments.errors import PaymentNotFound
from payments.models import Payment
from timeline import openapi as docs, pages
from timeline.entries import PaymentContext
from timeline.shapes import public_entry


class TimelineViewSet(MerchantViewSet):
    @docs.list_
    def list(self, request: Request, payment_id: str) -> ApiResponse:
        query = api.read_query(docs.list_, request)
        payment = _find(merchant_of(request), payment_id)
        entries, total = pages.page(PaymentContext.of(payment, clock.now()), **query)
        shown = {"timeline": [public_entry(entry) for entry in entries], "sources": pages.sources(payment)}
        return ApiResponse.of(shown | {"total": total} | query)


def _find(merchant: Merchant, payment_id: str) -> Payment:
    found = Payment.objects.of(merchant).filter(pk=payment_id)
    return ids.find(payment_id, "pay_", found.first, PaymentNotFound)
