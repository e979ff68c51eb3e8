from core.errors import NotFound, StateError, invalid_field


class RefundNotFound(NotFound):
    code = "refund_not_found"
    message = "No refund {id}."


class RefundNotCancelable(StateError):
    code = "refund_not_cancelable"
    message = "This refund is {status}; only a refund that was not submitted to a bank can be canceled."


class RefundNotAddressable(StateError):
    code = "refund_not_addressable"
    message = "This refund is {status}; a destination can be set only while the refund waits for it."


class PartialRefundNotSupported(StateError):
    """The bank cannot send to accounts. It only voids whole payments."""

    code = "partial_refund_not_supported"
    message = "The bank of this payment supports only a full refund: {whole}."


InvalidPaymentId = invalid_field("payment_id", "payment_id is the id of a payment.")
InvalidReason = invalid_field("reason", "reason is not one of the allowed values.")
InvalidNote = invalid_field("note", "note has 1 to 255 characters.")
InvalidDestination = invalid_field(
    "destination", "destination is an account: bank_code, bank_account, account_name."
)
