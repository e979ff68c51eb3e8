from typing import Any

from rest_framework.request import Request

from core import api, paging
from core.http import Answer
from merchants.api import MerchantViewSet, merchant_of
from transactions import ledger
from transactions import openapi as docs
from transactions.models import Transaction, TransactionQuerySet
from transactions.serializers import BalanceQuery, TransactionQuery
from transactions.shapes import balance_object, transaction_object

QUERY = TransactionQuery()
BALANCE_QUERY = BalanceQuery()


class TransactionViewSet(MerchantViewSet):
    """The history of payments and refunds."""

    @docs.list_
    def list(self, request: Request) -> Answer:
        query = api.read_query(QUERY, request)
        rows = _filtered(Transaction.objects.of(merchant_of(request)), query)
        return paging.page(rows, query, "transactions", transaction_object)


def _filtered(rows: TransactionQuerySet, query: dict[str, Any]) -> TransactionQuerySet:
    for name in ("status", "type"):
        if name in query:
            rows = rows.filter(**{name: query[name]})
    return paging.between(rows, query)


class BalanceViewSet(MerchantViewSet):
    """What the merchant has."""

    @docs.balance
    def retrieve(self, request: Request) -> Answer:
        query = api.read_query(BALANCE_QUERY, request)
        return Answer.of(balance_object(ledger.balance(merchant_of(request).id, before=query.get("at"))))
