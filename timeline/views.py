from rest_framework.request import Request

from core import clock
from core.http import api
from core.http.responses import ApiResponse
from merchants.api import MerchantViewSet, merchant_of
from payments.models import Payment
from timeline import openapi as docs, pages
from timeline.entries import PaymentContext
from timeline.shapes import public_entry


class TimelineViewSet(MerchantViewSet):
    @docs.list_
    def list(self, request: Request, payment_id: str) -> ApiResponse:
        query = api.read_query(docs.list_, request)
        payment = Payment.objects.of(merchant_of(request)).find(payment_id)
        entries, total = pages.page(PaymentContext.of(payment, clock.now()), **query)
        shown = {"timeline": [public_entry(entry) for entry in entries], "sources": pages.sources(payment)}
        return ApiResponse.of(shown | {"total": total} | query)
