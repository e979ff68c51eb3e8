from core.errors import NotFound

TransactionNotFound = NotFound.of("transaction_not_found", "No transaction {id}.")
