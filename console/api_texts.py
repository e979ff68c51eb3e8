"""Errors of the API that the console repeats, so that `manage.py messages` collects their texts.

They come from services that both call.
"""

from core.errors import CATALOGUE

SHOWN = (
    *("payout_account_not_allowed", "payout_account_too_new", "insufficient_funds", "merchant_not_found"),
    *("payment_not_refundable", "refund_amount_exceeded", "invalid_amount", "partial_refund_not_supported"),
    *("refund_not_cancelable", "withdrawal_not_cancelable", "qr_code_not_expirable", "bank_not_configured"),
    *("delivery_not_redeliverable", "webhook_not_replayable", "webhook_not_testable", "key_not_rollable"),
)


def texts() -> list[str]:
    return [CATALOGUE[code].message for code in SHOWN]
