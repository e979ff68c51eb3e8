from rest_framework.request import Request

from core import api
from core.http import ApiResponse
from counts import listing
from counts.lists import period_of
from ledger import services as ledger
from merchants.api import MerchantViewSet, merchant_of
from transactions import openapi as docs
from transactions import services
from transactions.filters import matching
from transactions.serializers import BalanceQuery, TransactionQuery
from transactions.shapes import balance_object, transaction_object

QUERY = TransactionQuery()
BALANCE_QUERY = BalanceQuery()


class TransactionViewSet(MerchantViewSet):
    """The history of payments and refunds."""

    @docs.list_
    def list(self, request: Request) -> ApiResponse:
        query = api.read_query(QUERY, request)
        wanted = matching(
            merchant_of(request).id,
            type=query.get("type"),
            status=query.get("status"),
            **period_of(query),
        )
        return listing.response(wanted, query, "transactions", transaction_object)

    @docs.retrieve
    def retrieve(self, request: Request, transaction_id: str) -> ApiResponse:
        found = services.find(merchant_id=merchant_of(request).id, transaction_id=transaction_id)
        return ApiResponse.of(transaction_object(found))


class BalanceViewSet(MerchantViewSet):
    """The balance."""

    @docs.balance
    def retrieve(self, request: Request) -> ApiResponse:
        query = api.read_query(BALANCE_QUERY, request)
        return ApiResponse.of(balance_object(ledger.balance(merchant_of(request).id, before=query.get("at"))))
