from rest_framework.request import Request

from core import clock
from core.http import api
from core.http.responses import ApiResponse
from counts import listing
from idempotency.services import Job
from idempotency.views import idempotent
from merchants.api import MerchantViewSet, merchant_of
from refunds import claims, openapi as docs, services
from refunds.models import REFUNDS
from refunds.shapes import ClaimLinkSecret, RefundObject, claim_link_object, claim_link_secret, refund_object


class RefundViewSet(MerchantViewSet):
    @docs.create
    @idempotent
    def create(self, request: Request) -> Job:
        fields, merchant, now = api.read_body(docs.create, request), merchant_of(request), clock.now()
        return lambda: refund_object(services.create(merchant=merchant, now=now, **fields))

    @docs.list_
    def list(self, request: Request) -> ApiResponse:
        query, merchant = api.read_query(docs.list_, request), merchant_of(request)
        return listing.of_owner(REFUNDS, merchant.id, query, refund_object, selective="payment_id")

    @docs.retrieve
    def retrieve(self, request: Request, refund_id: str) -> RefundObject:
        return refund_object(services.find(merchant=merchant_of(request), refund_id=refund_id))

    @docs.set_destination
    @idempotent
    def destination(self, request: Request, refund_id: str) -> Job:
        given, merchant, now = api.read_body(docs.set_destination, request), merchant_of(request), clock.now()
        return lambda: refund_object(
            services.set_destination(merchant=merchant, refund_id=refund_id, now=now, **given)
        )

    @docs.create_claim_link
    @idempotent
    def create_claim_link(self, request: Request, refund_id: str) -> Job:
        hours = api.read_body(docs.create_claim_link, request)["expires_in_hours"]
        merchant, now = merchant_of(request), clock.now()
        return lambda: claim_link_object(
            claims.create(merchant=merchant, refund_id=refund_id, hours=hours, now=now), now
        )

    @docs.claim_link
    def claim_link(self, request: Request, refund_id: str) -> ClaimLinkSecret:
        link = claims.reveal(merchant=merchant_of(request), refund_id=refund_id)
        return claim_link_secret(link, clock.now())

    @docs.cancel
    @idempotent
    def cancel(self, request: Request, refund_id: str) -> Job:
        merchant, now = merchant_of(request), clock.now()
        return lambda: refund_object(services.cancel(merchant=merchant, refund_id=refund_id, now=now))
