from core.errors import Invalid, NotFound, invalid_field


class PaymentNotFound(NotFound):
    code = "payment_not_found"
    message = "No payment {id}."


class InvalidAmount(Invalid):
    code = "invalid_amount"
    message = "Amount must be between 1 and 2000000 THB"


InvalidCurrency = invalid_field("currency", "The currency must be THB.")
InvalidReference = invalid_field("reference", "The reference has 1 to 35 characters.")
InvalidMetadata = invalid_field("metadata", "metadata is a JSON object of at most 50 keys and 8 kB.")
