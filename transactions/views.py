from typing import Any

from rest_framework.request import Request

from core import api, paging
from core.http import Answer
from merchants.api import MerchantViewSet, merchant_of
from transactions import openapi as docs
from transactions.models import Transaction, TransactionQuerySet
from transactions.serializers import TransactionQuery
from transactions.shapes import transaction_object

QUERY = TransactionQuery()


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
