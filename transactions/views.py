from rest_framework.request import Request

from core.http import api, paging
from core.http.responses import ApiResponse
from counts import listing
from counts.lists import period_of
from ledger import services as ledger
from ledger.balance_transactions import BALANCE_TRANSACTIONS, balances_after
from merchants.api import MerchantViewSet, merchant_of
from transactions import openapi as docs, services, shapes
from transactions.models import matching


class TransactionViewSet(MerchantViewSet):
    """The history of payments and refunds."""

    @docs.list_
    def list(self, request: Request) -> ApiResponse:
        query, merchant_id = api.read_query(docs.list_, request), merchant_of(request).id
        kind, status = query.get("type"), query.get("status")
        wanted = matching(merchant_id, type=kind, status=status, **period_of(query))
        return listing.response(wanted, query, "transactions", shapes.transaction_object)

    @docs.retrieve
    def retrieve(self, request: Request, transaction_id: str) -> shapes.TransactionObject:
        found = services.find(merchant_id=merchant_of(request).id, transaction_id=transaction_id)
        return shapes.transaction_object(found)


class BalanceTransactionViewSet(MerchantViewSet):
    """What changed the balance."""

    @docs.list_balance_transactions
    def list(self, request: Request) -> ApiResponse:
        query, merchant_id = api.read_query(docs.list_balance_transactions, request), merchant_of(request).id
        wanted = BALANCE_TRANSACTIONS.matching(merchant_id, query.get("type"), **period_of(query))
        found = listing.read(wanted, query)
        balances = balances_after(merchant_id, found.rows)
        shown = [shapes.balance_transaction_object(row, balances[row.id]) for row in found.rows]
        return paging.page_response(shown, found.total, query, "balance_transactions")


class BalanceViewSet(MerchantViewSet):
    """The balance."""

    @docs.balance
    def retrieve(self, request: Request) -> shapes.BalanceObject:
        query = api.read_query(docs.balance, request)
        return shapes.balance_object(ledger.balance(merchant_of(request).id, before=query.get("at")))
