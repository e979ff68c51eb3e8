from rest_framework.request import Request

from core import clock
from core.http import api, paging
from core.http.responses import ApiResponse
from merchants.api import MerchantViewSet, merchant_of
from settlements import openapi as docs, services
from settlements.models import Settlement
from settlements.shapes import SettlementObject, settlement_object


class SettlementViewSet(MerchantViewSet):
    @docs.list_
    def list(self, request: Request) -> ApiResponse:
        query, now = api.read_query(docs.list_, request), clock.now()
        mine = Settlement.objects.filter(merchant=merchant_of(request)).select_related("transfer")
        found = paging.created_between(mine, query)
        return paging.page(
            found, query, "settlements", lambda each: settlement_object(each, now), unfiltered=mine
        )

    @docs.retrieve
    def retrieve(self, request: Request, settlement_id: str) -> SettlementObject:
        found = services.find(merchant=merchant_of(request), settlement_id=settlement_id)
        return settlement_object(found, clock.now())
