from rest_framework.request import Request

from core import api, clock, paging
from core.http import ApiResponse
from counts import listing
from counts.lists import period_of
from idempotency.services import Job
from idempotency.views import idempotent
from merchants.api import MerchantViewSet, merchant_of
from refunds import claims, services
from refunds import openapi as docs
from refunds.filters import REFUNDS
from refunds.models import Refund
from refunds.serializers import CLAIM_LINK_REQUEST, DESTINATION_REQUEST, REFUND_REQUEST, RefundQuery
from refunds.shapes import claim_link_object, claim_link_secret, refund_object

QUERY = RefundQuery()


class RefundViewSet(MerchantViewSet):
    @docs.create
    @idempotent
    def create(self, request: Request) -> Job:
        fields, merchant, now = api.read_body(REFUND_REQUEST, request), merchant_of(request), clock.now()

        return lambda: ApiResponse.of(refund_object(services.create(merchant=merchant, now=now, **fields)))

    @docs.list_
    def list(self, request: Request) -> ApiResponse:
        query, merchant = api.read_query(QUERY, request), merchant_of(request)
        if "payment_id" in query:
            # Few refunds match, so they are read and not counted.
            mine = Refund.objects.of(merchant)
            where = {name: query[name] for name in ("status", "payment_id") if name in query}
            found = paging.created_between(mine.filter(**where), query)
            return paging.page(found, query, "refunds", refund_object, unfiltered=mine)
        wanted = REFUNDS.matching(merchant.id, query.get("status"), **period_of(query))
        return listing.response(wanted, query, "refunds", refund_object)

    @docs.retrieve
    def retrieve(self, request: Request, refund_id: str) -> ApiResponse:
        refund = services.find(merchant=merchant_of(request), refund_id=refund_id)
        return ApiResponse.of(refund_object(refund))

    @docs.set_destination
    @idempotent
    def destination(self, request: Request, refund_id: str) -> Job:
        fields, merchant, now = api.read_body(DESTINATION_REQUEST, request), merchant_of(request), clock.now()

        def work() -> ApiResponse:
            refund = services.set_destination(merchant=merchant, refund_id=refund_id, now=now, **fields)
            return ApiResponse.of(refund_object(refund))

        return work

    @docs.create_claim_link
    @idempotent
    def create_claim_link(self, request: Request, refund_id: str) -> Job:
        fields, merchant, now = api.read_body(CLAIM_LINK_REQUEST, request), merchant_of(request), clock.now()

        def work() -> ApiResponse:
            hours = fields["expires_in_hours"]
            link = claims.create(merchant=merchant, refund_id=refund_id, hours=hours, now=now)
            return ApiResponse.of(claim_link_object(link, now))

        return work

    @docs.claim_link
    def claim_link(self, request: Request, refund_id: str) -> ApiResponse:
        link = claims.reveal(merchant=merchant_of(request), refund_id=refund_id)
        return ApiResponse.of(claim_link_secret(link, clock.now()))

    @docs.cancel
    @idempotent
    def cancel(self, request: Request, refund_id: str) -> Job:
        merchant, now = merchant_of(request), clock.now()

        def work() -> ApiResponse:
            refund = services.cancel(merchant=merchant, refund_id=refund_id, now=now)
            return ApiResponse.of(refund_object(refund))

        return work
