from core.errors import Busy, Invalid, NotFound, PaymentError, StateError, invalid_field
from ledger.errors import InsufficientFunds
from merchants.errors import BankNotConfigured


class PaymentNotFound(NotFound):
    code = "payment_not_found"
    message = "No payment {id}."


class PaymentNotRefundable(StateError):
    code = "payment_not_refundable"
    message = "This payment is {status}; only a succeeded payment can be refunded."


class PaymentNotHeld(StateError):
    code = "payment_not_held"
    message = "This payment is not held: `hold` is null."


class RefundAmountExceeded(StateError):
    code = "refund_amount_exceeded"
    message = "The amount is more than the remaining amount of this payment: {left}."


class InvalidAmount(Invalid):
    code = "invalid_amount"
    message = "Amount must be between 1 and 2000000 THB"


InvalidCurrency = invalid_field("currency", "THB")
InvalidReference = invalid_field("reference", "a string of 1 to 35 characters")
InvalidMetadata = invalid_field(
    "metadata", "a JSON object of at most 50 keys and 8192 bytes, with numbers of at most 64 bits"
)
InvalidDescription = invalid_field("description", "a string of 1 to 255 characters")
InvalidTokenId = invalid_field("token_id", "a token that the acquirer made for a card")


class TokenAlreadyUsed(Invalid):
    code = "token_already_used"
    message = "This token was already used. Create a new token for the card."


class CardDeclined(PaymentError):
    code = "card_declined"
    message = "The card was declined."


class CardInsufficientFunds(InsufficientFunds):
    message = "The card has insufficient funds."


class ExpiredCard(PaymentError):
    code = "expired_card"
    message = "The card has expired."


class ProcessingError(PaymentError):
    code = "processing_error"
    message = "The acquirer could not process the card."


class AcquirerNotConfigured(BankNotConfigured):
    message = "This merchant has no acquirer for cards configured yet."


class TooManyCardPayments(Busy):
    code = "too_many_card_payments"
    message = "Too many card payments are in progress. Nothing was stored; try again shortly."


class AcquirerUnavailable(Busy):
    code = "acquirer_unavailable"
    message = "The acquirer does not answer at the moment. Nothing was stored; try again shortly."


class SafeModeOn(Busy):
    code = "safe_mode"
    message = "The operator has paused card payments. Nothing was stored; try again later."
