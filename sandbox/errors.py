from core.errors import (
    AuthenticationError,
    IdempotencyError,
    Invalid,
    InvalidParameters,
    InvalidQrData,
    NotFound,
    NotPermitted,
    invalid_field,
)
from merchants.errors import RateLimitExceeded

WITHIN_A_YEAR = "a time (2026-11-21T10:00:00Z), within a year of now, not of the Buddhist calendar"
InvalidPaidAt = invalid_field("paid_at", WITHIN_A_YEAR)
InvalidReportAt = invalid_field("report_at", WITHIN_A_YEAR)
InvalidDate = invalid_field("date", "a date (2026-11-21), not of the Buddhist calendar")
NoPaymentCode = InvalidQrData.worded(
    "qr_data must be the payload of a Thai QR bill payment with an amount. Received: {received}."
)
UnknownQrCode = InvalidQrData.worded("This bank only pays codes of test merchants.")
QrCodePaidTooOften = InvalidQrData.worded(
    "A code can be paid {limit} times here. To pay it more often, use a test key."
)
InvalidScenario = Invalid.of(
    "invalid_scenario", "scenario must be a scenario of the sandbox bank. Received: {received}."
)
ScenarioNeedsKey = InvalidScenario.worded("This scenario needs a test key.")


class InvalidMinutes(InvalidParameters):
    """A time on the page of the bank."""

    message = "Give whole minutes from now, within a year."


TooManyPayments = RateLimitExceeded.worded(
    "Too many payments from this address. Try again in {retry_after} s."
)
TestModeOnly = NotPermitted.of("test_mode_only", "The sandbox bank is for test keys only.")
InvalidOrder = Invalid.of("invalid_order", "{param} of the order is missing or malformed.")
OrderReferenceReused = IdempotencyError.of("order_reference_reused", "Another order has this reference.")
OrderNotFound = NotFound.of("order_not_found", "The bank has no order with this reference.")
InvalidOrderSignature = AuthenticationError.of(
    "invalid_order_signature", "The signature of the order is missing, wrong or too old."
)
