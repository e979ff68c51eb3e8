from typing import Any

from rest_framework.request import Request

from core.http import api, paging
from core.http.responses import ApiResponse
from counts.lists import period_of
from merchants.api import MerchantViewSet, merchant_of
from request_log import openapi as docs, services
from request_log.shapes import FullRequestObject, full_request_object, request_object, stored_route


class RequestViewSet(MerchantViewSet):
    @docs.list_requests
    def list(self, request: Request) -> ApiResponse:
        query = api.read_query(docs.list_requests, request)
        merchant = merchant_of(request)
        records, next_after = services.page(
            merchant,
            limit=query["limit"],
            cursor=paging.find_cursor(services.requests_of(merchant), query),
            **_filters(query),
        )
        shown = [request_object(record) for record in records]
        return ApiResponse.of({"requests": shown, "limit": query["limit"], "next_after": next_after})

    @docs.get_request
    def retrieve(self, request: Request, request_id: str) -> FullRequestObject:
        return full_request_object(services.find(merchant=merchant_of(request), request_id=request_id))


def _filters(query: dict[str, Any]) -> dict[str, Any]:
    names = ("method", "payment_id", "request_id")
    filters: dict[str, Any] = {**period_of(query), **{name: query[name] for name in names if name in query}}
    if "key" in query:
        filters["key_id"] = query["key"]
    if "route" in query:
        filters["route"] = stored_route(query["route"])
    return filters | (services.of_class(query["status"]) if "status" in query else {})
