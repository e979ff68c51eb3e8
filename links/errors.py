from core.errors import NotFound, StateError, invalid_field
from links.models import MAX_PAYMENTS

PaymentLinkNotFound = NotFound.of("payment_link_not_found", "No payment link {id}.")
PaymentLinkNotActive = StateError.of(
    "payment_link_not_active", "This payment link is {status}; only an active one can be paid or deactivated."
)
AMOUNT = "an integer from 100 to 200000000 satang"
InvalidAmountMin = invalid_field("amount_min", AMOUNT)
InvalidAmountMax = invalid_field("amount_max", f"{AMOUNT}, and at least amount_min")
InvalidMaxPayments = invalid_field("max_payments", f"an integer from 1 to {MAX_PAYMENTS}, or null")
InvalidExpiresAt = invalid_field("expires_at", "a time (2026-12-31T10:00:00Z) after now, and within 366 days")
