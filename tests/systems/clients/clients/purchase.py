# mypy: ignore-errors
"""A whole purchase by the client that openapi-python-client generates. Prints the refund as JSON."""

import json
import os
import time

from thai_qr_payments_client import AuthenticatedClient
from thai_qr_payments_client.api.payments import get_payment
from thai_qr_payments_client.api.qr_codes import create_qr_code
from thai_qr_payments_client.api.refunds import create_refund, get_refund
from thai_qr_payments_client.api.sandbox_bank import pay_at_sandbox_bank
from thai_qr_payments_client.models import (
    PaymentObjectStatus,
    QrCodeRequest,
    QrCodeRequestCurrency,
    RefundObjectStatus,
    RefundRequest,
    SandboxPaymentRequest,
)

CLIENT = AuthenticatedClient(base_url=os.environ["BASE_URL"], token=os.environ["SECRET_KEY"])


def until(read, is_done):
    deadline = time.monotonic() + 60
    while not is_done(value := read()):
        if time.monotonic() > deadline:
            raise TimeoutError(value)
        time.sleep(0.05)
    return value


code = create_qr_code.sync(
    client=CLIENT,
    body=QrCodeRequest(amount=150_000, currency=QrCodeRequestCurrency.THB, reference="by-python"),
    idempotency_key="order-17",
)
pay_at_sandbox_bank.sync(client=CLIENT, body=SandboxPaymentRequest(qr_data=code.qr_data))
payment = until(
    lambda: get_payment.sync(code.payment_id, client=CLIENT),
    lambda payment: payment.status is not PaymentObjectStatus.PENDING,
)
assert payment.status is PaymentObjectStatus.SUCCEEDED, payment
refund = create_refund.sync(client=CLIENT, body=RefundRequest(payment_id=code.payment_id, amount=60_000))
refund = until(
    lambda: get_refund.sync(refund.refund_id, client=CLIENT),
    lambda refund: refund.status is not RefundObjectStatus.PENDING,
)
print(json.dumps(refund.to_dict()))
