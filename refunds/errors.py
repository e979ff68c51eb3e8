from approvals.payout_accounts import PayoutAccountNotAllowed, PayoutAccountTooNew
from core.errors import Invalid, NotFound, StateError, invalid_field
from refunds.models import RefundReason


class RefundNotFound(NotFound):
    code = "refund_not_found"
    message = "No refund {id}."


class RefundNotCancelable(StateError):
    code = "refund_not_cancelable"
    message = "This refund is {status}; only a refund that was not submitted to a bank can be canceled."


class RefundNotAddressable(StateError):
    code = "refund_not_addressable"
    message = "This refund is {status}; a destination can be set only while the refund waits for it."


class TooManyPendingRefunds(StateError):
    code = "too_many_pending_refunds"
    message = "This payment has {limit} pending refunds already. Wait until one of them ends, or cancel one."


class ClaimLinkNotFound(NotFound):
    code = "claim_link_not_found"
    message = "Refund {id} has no claim link."


class TooManyClaimLinks(StateError):
    code = "too_many_claim_links"
    message = "This refund had {limit} claim links already. Set its destination instead."


class DestinationNotAllowed(PayoutAccountNotAllowed):
    message = f"destination.{PayoutAccountNotAllowed.message}"


class DestinationTooNew(PayoutAccountTooNew):
    message = f"destination.{PayoutAccountTooNew.message}"


class PartialRefundNotSupported(StateError):
    """The bank cannot send to accounts. It only voids whole payments."""

    code = "partial_refund_not_supported"
    message = "The bank of this payment supports only a full refund: {whole}."


InvalidExpiresInHours = invalid_field("expires_in_hours", "an integer from 1 to 720 hours")
InvalidPaymentId = invalid_field("payment_id", "the id of a payment")
InvalidReason = invalid_field("reason", f"one of {', '.join(RefundReason)}")
InvalidNote = invalid_field("note", "a string of 1 to 255 characters")


class InvalidDestination(Invalid):
    code = "invalid_destination"
    message = (
        "destination must be an object with bank_code, bank_account and account_name. Received: {received}."
    )


class CardRefundDestination(InvalidDestination):
    message = "destination must be absent: a card payment is refunded to the same card."
