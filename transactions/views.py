from typing import Any

from rest_framework.request import Request

from core import api, paging
from core.http import Answer
from merchants.api import MerchantViewSet, merchant_of
from transactions import ledger, listing
from transactions import openapi as docs
from transactions.counting import Wanted
from transactions.serializers import BalanceQuery, TransactionQuery
from transactions.shapes import balance_object, transaction_object
from transactions.spans import BEGINNING, END

QUERY = TransactionQuery()
BALANCE_QUERY = BalanceQuery()


class TransactionViewSet(MerchantViewSet):
    """The history of payments and refunds."""

    @docs.list_
    def list(self, request: Request) -> Answer:
        query = api.read_query(QUERY, request)
        found = listing.page(
            _wanted(merchant_of(request).id, query), limit=query["limit"], offset=query["offset"]
        )
        shown = [transaction_object(row) for row in found.transactions]
        return paging.answer(shown, found.total, query, "transactions")


def _wanted(merchant_id: str, query: dict[str, Any]) -> Wanted:
    return Wanted(
        merchant_id,
        type=query.get("type"),
        status=query.get("status"),
        start=min(query.get("start_date", BEGINNING), END),
        end=min(query.get("end_date", END), END),
    )


class BalanceViewSet(MerchantViewSet):
    """What the merchant has."""

    @docs.balance
    def retrieve(self, request: Request) -> Answer:
        query = api.read_query(BALANCE_QUERY, request)
        return Answer.of(balance_object(ledger.balance(merchant_of(request).id, before=query.get("at"))))
