from core.errors import NotFound, StateError, invalid_field
from merchants.errors import RateLimitExceeded

QrCodeNotFound = NotFound.of("qr_code_not_found", "No QR code {id}.")
QrCodeNotExpirable = StateError.of(
    "qr_code_not_expirable", "This QR code is {status}; only a pending QR code can be expired."
)
ReferenceInUse = StateError.of(
    "reference_in_use", "QR code {id} has this reference and is open. Show it again, or expire it first."
)
QrCodeGone = NotFound.of("qr_code_gone", "This QR code can no longer be paid: it is {status}.", status=410)
TooManyPageRequests = RateLimitExceeded.worded(
    "Too many requests from this network. Try again in {retry_after} s."
)
QrCodeInReview = QrCodeGone.worded("Do not pay this QR code: money arrived for it that does not match.")
QrCodeSuspended = QrCodeGone.worded("Do not pay this QR code: its shop takes no payments now.")
TooManyQrCards = RateLimitExceeded.worded("Too many QR cards of this merchant. Try again in {retry_after} s.")
InvalidFormat = invalid_field("format", "png or svg")
InvalidExpiryMinutes = invalid_field("expiry_minutes", "an integer from 1 to 1440 minutes")
InvalidClientName = invalid_field("client_name", "a string of 1 to 140 characters")
InvalidClientBankName = invalid_field("client_bank_name", "a string of 1 to 140 characters")
InvalidClientBankAccount = invalid_field("client_bank_account", "a string of 1 to 140 characters")
