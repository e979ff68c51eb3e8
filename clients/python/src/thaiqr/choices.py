"""The values that requests may have."""

from typing import Literal

PaymentStatus = Literal["pending", "succeeded", "failed", "expired", "refunded"]
TransactionStatus = Literal["succeeded", "failed", "pending", "refunded"]
TransactionType = Literal["payment", "refund"]
RefundStatus = Literal["pending", "completed", "failed", "canceled"]
RefundReason = Literal["requested_by_customer", "duplicate", "fraudulent", "late_payment", "other"]
CardFormat = Literal["png", "pdf"]
EvidenceFormat = Literal["json", "pdf"]
ImageFormat = Literal["png", "svg"]
Language = Literal["th", "en"]
ReturnPart = Literal["all", "excess"]
WithdrawalStatus = Literal["pending", "processing", "succeeded", "failed", "canceled"]
DestinationType = Literal["line", "email"]
WebhookStatus = Literal["active", "disabled"]
DeliveryState = Literal["pending", "succeeded", "failed", "held"]
EventType = Literal[
    "payment.pending",
    "payment.succeeded",
    "payment.failed",
    "payment.fee_known",
    "payment.hold_lifted",
    "payment.exception",
    "payment.exception_resolved",
    "refund.completed",
    "refund.failed",
    "settlement.arrived",
    "withdrawal.pending",
    "withdrawal.processed",
    "withdrawal.succeeded",
    "withdrawal.failed",
]
Scenario = Literal[
    "paid",
    "declined",
    "late",
    "reported_late",
    "twice",
    "over",
    "under",
    "callback_lost",
    "callback_repeated",
    "payer_unknown",
    "unknown_reference",
    "reversed",
]
BalanceTransactionType = Literal[
    "payment",
    "unconfirmed_payment",
    "unsettled_payment",
    "fee",
    "unsettled_fee",
    "fee_added",
    "fee_returned",
    "settled",
    "unsettled",
    "confirmed",
    "refund_reserved",
    "refund_paid",
    "refund_released",
    "refund_returned",
    "withdrawal_reserved",
    "withdrawal_paid",
    "withdrawal_released",
    "withdrawal_returned",
    "reversal",
    "unconfirmed_reversal",
]
StatusClass = Literal["2xx", "3xx", "4xx", "5xx"]
Method = Literal["GET", "POST", "PATCH", "DELETE"]
