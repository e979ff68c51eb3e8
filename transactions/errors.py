from core.errors import NotFound


class TransactionNotFound(NotFound):
    code = "transaction_not_found"
    message = "No transaction {id}."
