from core.errors import AuthenticationError, IdempotencyError, Invalid, NotFound, NotPermitted, invalid_field

InvalidQrData = invalid_field("qr_data", "This is not a Thai QR bill payment with an amount.")
InvalidScenario = invalid_field("scenario", "The sandbox bank does not have this scenario.")
InvalidPaidAt = invalid_field("paid_at", "Give a time with its offset, within a year of now.")
InvalidReportAt = invalid_field("report_at", "Give a time with its offset, within a year of now.")
InvalidDate = invalid_field("date", "Give a date (2026-11-21).")


class TestModeOnly(NotPermitted):
    code = "test_mode_only"
    message = "The sandbox bank is for test keys only."


class InvalidOrder(Invalid):
    code = "invalid_order"
    message = "A field of the order is missing or malformed."


class OrderReferenceReused(IdempotencyError):
    code = "order_reference_reused"
    message = "Another order has this reference."


class OrderNotFound(NotFound):
    code = "order_not_found"
    message = "The bank has no order with this reference."


class InvalidOrderSignature(AuthenticationError):
    code = "invalid_order_signature"
    message = "The signature of the order is missing, wrong or too old."
