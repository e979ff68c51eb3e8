from core.errors import NotFound, StateError, invalid_field
from merchants.errors import RateLimitExceeded


class QrCodeNotFound(NotFound):
    code = "qr_code_not_found"
    message = "No QR code {id}."


class QrCodeNotExpirable(StateError):
    code = "qr_code_not_expirable"
    message = "This QR code is {status}; only a pending QR code can be expired."


class ReferenceInUse(StateError):
    code = "reference_in_use"
    message = "QR code {id} has this reference and is open. Show it again, or expire it first."


class QrCodeGone(NotFound):
    status = 410
    code = "qr_code_gone"
    message = "This QR code can no longer be paid: it is {status}."


class TooManyPageRequests(RateLimitExceeded):
    message = "Too many requests from this network. Try again in {retry_after} s."


class QrCodeInReview(QrCodeGone):
    message = "Do not pay this QR code: money arrived for it that does not match."


class QrCodeSuspended(QrCodeGone):
    message = "Do not pay this QR code: its shop takes no payments now."


class TooManyQrCards(RateLimitExceeded):
    message = "Too many QR cards of this merchant. Try again in {retry_after} s."


InvalidFormat = invalid_field("format", "png or svg")
InvalidExpiryMinutes = invalid_field("expiry_minutes", "an integer from 1 to 1440 minutes")
InvalidClientName = invalid_field("client_name", "a string of 1 to 140 characters")
InvalidClientBankName = invalid_field("client_bank_name", "a string of 1 to 140 characters")
InvalidClientBankAccount = invalid_field("client_bank_account", "a string of 1 to 140 characters")
