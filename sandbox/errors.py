from core.errors import NotPermitted, invalid_field

InvalidQrData = invalid_field("qr_data", "This is not a Thai QR bill payment with an amount.")
InvalidScenario = invalid_field("scenario", "The sandbox bank knows no such scenario.")
InvalidPaidAt = invalid_field("paid_at", "Give a time with its offset, within a year of now.")
InvalidReportAt = invalid_field("report_at", "Give a time with its offset, within a year of now.")


class TestModeOnly(NotPermitted):
    code = "test_mode_only"
    message = "The sandbox bank is for test keys only."
