from approvals.payout_accounts import PayoutAccountNotAllowed, PayoutAccountTooNew
from core.errors import Invalid, NotFound, StateError, invalid_field
from refunds.models import RefundReason

RefundNotFound = NotFound.of("refund_not_found", "No refund {id}.")
RefundNotCancelable = StateError.of(
    "refund_not_cancelable",
    "This refund is {status}; only a refund that was not submitted to a bank can be canceled.",
)
RefundNotAddressable = StateError.of(
    "refund_not_addressable",
    "This refund is {status}; a destination can be set only while the refund waits for it.",
)
TooManyPendingRefunds = StateError.of(
    "too_many_pending_refunds",
    "This payment has {limit} pending refunds already. Wait until one of them ends, or cancel one.",
)
ClaimLinkNotFound = NotFound.of("claim_link_not_found", "Refund {id} has no claim link.")
TooManyClaimLinks = StateError.of(
    "too_many_claim_links", "This refund had {limit} claim links already. Set its destination instead."
)
DestinationNotAllowed = PayoutAccountNotAllowed.worded(f"destination.{PayoutAccountNotAllowed.message}")
DestinationTooNew = PayoutAccountTooNew.worded(f"destination.{PayoutAccountTooNew.message}")
PartialRefundNotSupported = StateError.of(
    "partial_refund_not_supported", "The bank of this payment supports only a full refund: {whole}."
)
"""The bank cannot send to accounts. It only voids whole payments."""
InvalidExpiresInHours = invalid_field("expires_in_hours", "an integer from 1 to 720 hours")
InvalidPaymentId = invalid_field("payment_id", "the id of a payment")
InvalidReason = invalid_field("reason", f"one of {', '.join(RefundReason)}")
InvalidNote = invalid_field("note", "a string of 1 to 255 characters")
InvalidDestination = Invalid.of(
    "invalid_destination",
    "destination must be an object with bank_code, bank_account and account_name. Received: {received}.",
)
CardRefundDestination = InvalidDestination.worded(
    "destination must be absent: a card payment is refunded to the same card."
)
