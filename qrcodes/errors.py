from core.errors import Invalid, NotFound, StateError, invalid_field


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


class InvalidFormat(Invalid):
    code = "invalid_format"
    message = "format is png or svg."


InvalidExpiryMinutes = invalid_field("expiry_minutes", "expiry_minutes is 1 to 1440.")
InvalidClientName = invalid_field("client_name", "client_name has 1 to 140 characters.")
InvalidClientBankName = invalid_field("client_bank_name", "client_bank_name has 1 to 140 characters.")
InvalidClientBankAccount = invalid_field(
    "client_bank_account", "client_bank_account has 1 to 140 characters."
)
