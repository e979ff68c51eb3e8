"""OpenAPI descriptions of the transaction history and the balance."""

from functools import partial

from core.http.openapi import Tag, described
from core.http.scopes import Scope
from transactions.serializers import BalanceQuery, BalanceTransactionQuery, TransactionQuery
from transactions.shapes import BalanceObject, BalanceTransactionObject, TransactionObject

_read = partial(described, __file__, tag=Tag.TRANSACTIONS, scope=Scope.PAYMENTS_READ)

list_ = _read("list_transactions", query=TransactionQuery, response=TransactionObject, rows="transactions")
retrieve = _read("get_transaction", response=TransactionObject)
balance = _read("retrieve_balance", query=BalanceQuery, response=BalanceObject)
list_balance_transactions = _read(
    "list_balance_transactions",
    query=BalanceTransactionQuery,
    response=BalanceTransactionObject,
    rows="balance_transactions",
    page={"words": "what changed the balance"},
)
