"""OpenAPI descriptions of the transaction history and the balance."""

from functools import partial

from core.openapi import Answer, Operation, Tag, page_of
from core.scopes import Scope
from transactions.errors import TransactionNotFound
from transactions.serializers import BalanceQuery, BalanceTransactionQuery, TransactionQuery
from transactions.shapes import BalanceObject, BalanceTransactionObject, TransactionObject

_read = partial(Operation, tag=Tag.TRANSACTIONS, scope=Scope.PAYMENTS_READ)
TRANSACTION = {
    "transaction_id": "txn_0oDFPag9MeYQQYpPemtNRiHjFyL",
    "payment_id": "pay_0oDFPZjiZAWmp6O2BO6aMzhgtUt",
    "type": "payment",
    "status": "succeeded",
    "amount": 150_000,
    "amount_display": "1,500.00 THB",
    "currency": "THB",
    "created_at": "2026-11-21T03:05:42.310Z",
}
BALANCE_TRANSACTION = {
    "balance_transaction_id": "bal_0oDFPag9MeYQQYpPemtNRiHjFyL",
    "type": "payment",
    "amount": 150_000,
    "amount_display": "1,500.00 THB",
    "balance_after": 420_000,
    "reserved_amount": 0,
    "reserved_after": 50_000,
    "unconfirmed_amount": 0,
    "unconfirmed_after": 0,
    "currency": "THB",
    "source": "pay_0oDFPZjiZAWmp6O2BO6aMzhgtUt",
    "created_at": "2026-11-21T03:05:42.310Z",
}

list_ = _read(
    name="list_transactions",
    summary="List transactions",
    description="Payments, failed attempts and refunds (negative amounts), newest first. Pending and expired "
    "payments have no transaction.",
    query=TransactionQuery,
    response=page_of("transactions", TransactionObject, TRANSACTION),
)

retrieve = _read(
    name="get_transaction",
    summary="Retrieve a transaction",
    description="A row of the history of payments and refunds.",
    response=Answer(TransactionObject, TRANSACTION),
    errors=(TransactionNotFound,),
)

balance = _read(
    name="retrieve_balance",
    summary="Retrieve the balance",
    description="The balance now or at an instant: `available` for refunds and withdrawals, `reserved` "
    "for those in progress.",
    query=BalanceQuery,
    response=Answer(BalanceObject, {"available": 150_000, "reserved": 0, "currency": "THB"}),
)

list_balance_transactions = _read(
    name="list_balance_transactions",
    summary="List what changed the balance",
    description="Every change of the balance, newest first, with the balance after it. The sums of all "
    "`amount`, `reserved_amount` and `unconfirmed_amount` are the balance. A change that commits late "
    "appears at its `created_at`, and the balances after it then contain it.",
    query=BalanceTransactionQuery,
    response=page_of(
        "balance_transactions",
        BalanceTransactionObject,
        BALANCE_TRANSACTION,
        words="what changed the balance",
    ),
)
