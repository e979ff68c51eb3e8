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


class NoPaymentCode(InvalidQrData):
    message = "qr_data must be the payload of a Thai QR bill payment with an amount. Received: {received}."


class UnknownQrCode(InvalidQrData):
    message = "This bank only pays codes of test merchants."


class QrCodePaidTooOften(InvalidQrData):
    message = "A code can be paid {limit} times here. To pay it more often, use a test key."


class InvalidScenario(Invalid):
    code = "invalid_scenario"
    message = "scenario must be a scenario of the sandbox bank. Received: {received}."


class ScenarioNeedsKey(InvalidScenario):
    message = "This scenario needs a test key."


class InvalidMinutes(InvalidParameters):
    """A time on the page of the bank."""

    message = "Give whole minutes from now, within a year."


class TooManyPayments(RateLimitExceeded):
    message = "Too many payments from this address. Try again in {retry_after} s."


class TestModeOnly(NotPermitted):
    code = "test_mode_only"
    message = "The sandbox bank is for test keys only."


class InvalidOrder(Invalid):
    code = "invalid_order"
    message = "{param} of the order is missing or malformed."


class OrderReferenceReused(IdempotencyError):
    code = "order_reference_reused"
    message = "Another order has this reference."


class OrderNotFound(NotFound):
    code = "order_not_found"
    message = "The bank has no order with this reference."


class InvalidOrderSignature(AuthenticationError):
    code = "invalid_order_signature"
    message = "The signature of the order is missing, wrong or too old."
