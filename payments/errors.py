from core.errors import Busy, Invalid, NotFound, PaymentError, StateError, invalid_field
from ledger.errors import InsufficientFunds
from merchants.errors import BankNotConfigured

PaymentNotFound = NotFound.of("payment_not_found", "No payment {id}.")
PaymentNotRefundable = StateError.of(
    "payment_not_refundable", "This payment is {status}; only a succeeded payment can be refunded."
)
PaymentNotHeld = StateError.of("payment_not_held", "This payment is not held: `hold` is null.")
RefundAmountExceeded = StateError.of(
    "refund_amount_exceeded", "The amount is more than the remaining amount of this payment: {left}."
)
InvalidAmount = Invalid.of("invalid_amount", "Amount must be between 1 and 2000000 THB")
InvalidCurrency = invalid_field("currency", "THB")
InvalidReference = invalid_field("reference", "a string of 1 to 35 characters")
InvalidMetadata = invalid_field(
    "metadata", "a JSON object of at most 50 keys and 8192 bytes, with numbers of at most 64 bits"
)
InvalidDescription = invalid_field("description", "a string of 1 to 255 characters")
InvalidTokenId = invalid_field("token_id", "a token that the acquirer made for a card")
TokenAlreadyUsed = Invalid.of(
    "token_already_used", "This token was already used. Create a new token for the card."
)
CardDeclined = PaymentError.of("card_declined", "The card was declined.")
CardInsufficientFunds = InsufficientFunds.worded("The card has insufficient funds.")
ExpiredCard = PaymentError.of("expired_card", "The card has expired.")
ProcessingError = PaymentError.of("processing_error", "The acquirer could not process the card.")
AcquirerNotConfigured = BankNotConfigured.worded("This merchant has no acquirer for cards configured yet.")
TooManyCardPayments = Busy.of(
    "too_many_card_payments", "Too many card payments are in progress. Nothing was stored; try again shortly."
)
AcquirerUnavailable = Busy.of(
    "acquirer_unavailable",
    "The acquirer does not answer at the moment. Nothing was stored; try again shortly.",
)
SafeModeOn = Busy.of(
    "safe_mode", "The operator has paused card payments. Nothing was stored; try again later."
)
