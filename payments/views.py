from rest_framework.request import Request

from core import clock
from core.http import api, paging
from core.http.responses import ApiResponse
from counts import listing
from idempotency.services import Job
from idempotency.views import idempotent
from merchants.api import MerchantViewSet, merchant_of
from payments import card_responses, cards, openapi as docs, search, services
from payments.models import PAYMENTS, Payment
from payments.shapes import PaymentObject, load_exceptions, payment_object


class PaymentViewSet(MerchantViewSet):
    """Pay by card, list payments, and lift their holds."""

    @docs.list_
    def list(self, request: Request) -> ApiResponse:
        query, now, merchant = api.read_query(docs.list_, request), clock.now(), merchant_of(request)

        def show(payment: Payment) -> PaymentObject:
            payment.merchant = merchant
            return payment_object(payment, now)

        if search.is_needed(query):
            found = search.find(merchant, query, now)
            return paging.page(
                found.payments,
                query,
                "payments",
                show,
                cursor=found.cursor,
                more=found.more,
                kind_columns=found.kind_columns,
                load=load_exceptions,
            )
        return listing.of_owner(PAYMENTS, merchant.id, query, show, now=now, load=load_exceptions)

    @docs.create
    @idempotent
    def create(self, request: Request) -> Job:
        fields = api.read_body(docs.create, request)
        fields.pop("currency")
        purchase = cards.draft(merchant=merchant_of(request), now=clock.now(), **fields)
        return card_responses.job(purchase, clock.now)

    @docs.lift_hold
    @idempotent
    def lift_hold(self, request: Request, payment_id: str) -> Job:
        merchant, now = merchant_of(request), clock.now()
        return lambda: payment_object(services.lift_hold(merchant, payment_id, now=now), now)
