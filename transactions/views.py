from typing import Any

from rest_framework.request import Request

from core import api, paging
from core.http import ApiResponse
from ledger import services as ledger
from merchants.api import MerchantViewSet, merchant_of
from transactions import listing
from transactions import openapi as docs
from transactions.counting import BEGINNING, END, TransactionFilter
from transactions.serializers import BalanceQuery, TransactionQuery
from transactions.shapes import balance_object, transaction_object

QUERY = TransactionQuery()
BALANCE_QUERY = BalanceQuery()


class TransactionViewSet(MerchantViewSet):
    """The history of payments and refunds."""

    @docs.list_
    def list(self, request: Request) -> ApiResponse:
        query = api.read_query(QUERY, request)
        page = listing.page(
            _filter(merchant_of(request).id, query), limit=query["limit"], offset=query["offset"]
        )
        shown = [transaction_object(row) for row in page.transactions]
        return paging.page_response(shown, page.total, query, "transactions")


def _filter(merchant_id: str, query: dict[str, Any]) -> TransactionFilter:
    return TransactionFilter(
        merchant_id,
        type=query.get("type"),
        status=query.get("status"),
        start=min(query.get("start_date", BEGINNING), END),
        end=min(query.get("end_date", END), END),
    )


class BalanceViewSet(MerchantViewSet):
    """The balance."""

    @docs.balance
    def retrieve(self, request: Request) -> ApiResponse:
        query = api.read_query(BALANCE_QUERY, request)
        return ApiResponse.of(balance_object(ledger.balance(merchant_of(request).id, before=query.get("at"))))
