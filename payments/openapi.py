"""Payment operations in the OpenAPI document."""

from functools import partial
from typing import Annotated, Any, NotRequired

from core.objects import PaymentId
from core.openapi import Answer, Body, Operation, Tag, page_of
from core.scopes import Scope
from ledger.errors import InsufficientFunds
from merchants.errors import BankNotConfigured
from payments import usual_amounts
from payments.errors import (
    AcquirerUnavailable,
    CardDeclined,
    ExpiredCard,
    PaymentNotFound,
    ProcessingError,
    SafeModeOn,
    TokenAlreadyUsed,
    TooManyCardPayments,
)
from payments.serializers import PaymentQuery, PaymentRequest
from payments.shapes import PaymentObject

SearchedTo = Annotated[
    PaymentId,
    "Only if older payments of the period (of codes and by card) were not read: continue with this id as "
    "`after` (or as `before`). `total` counts what was found from the cursor until here.",
]
_read = partial(Operation, tag=Tag.PAYMENTS, scope=Scope.PAYMENTS_READ)
PAYMENT: dict[str, Any] = {
    "payment_id": "pay_0oDFPZjiZAWmp6O2BO6aMzhgtUt",
    "qr_code_id": "qr_0oDFPXZGqcZBZBvfqisJHCvwJvO",
    "status": "succeeded",
    "amount": 150_000,
    "amount_display": "1,500.00 THB",
    "currency": "THB",
    "reference": "INV-2026-0042",
    "description": None,
    "created_at": "2026-11-21T03:04:05.123Z",
    "updated_at": "2026-11-21T03:05:42.310Z",
    "completed_at": "2026-11-21T03:05:41.000Z",
    "card": None,
    "metadata": {"table": 4},
    "amount_received": None,
    "amount_refunded": 0,
    "failure_code": None,
    "expires_at": "2026-11-21T03:19:05.123Z",
    "authorize_uri": None,
    "exceptions": [],
    "exceptions_has_more": False,
    "payer": {
        "name": "SOMCHAI J.",
        "bank_code": "014",
        "bank_name": "Siam Commercial Bank",
        "bank_account": "xxxxxx4567",
    },
    "bank_transaction_id": "2026112103054100012345678",
    "refunds": {"completed": 0, "pending": 0, "remaining": 150_000},
    "livemode": True,
}
PAID_BY_CARD = PAYMENT | {
    "qr_code_id": None,
    "reference": None,
    "description": "Two tickets",
    "expires_at": None,
    "payer": None,
    "bank_transaction_id": None,
    "card": {"last4": "4242", "brand": "visa"},
}

create = Operation(
    name="create_payment",
    tag=Tag.PAYMENTS,
    scope=Scope.PAYMENTS_WRITE,
    summary="Pay by card",
    description="Charges the card behind a token. A decline is a 402 that names the failed payment. "
    "`pending` means that the acquirer has not answered yet: poll, or wait for the webhook, and never pay "
    "again without the same `Idempotency-Key`. `pending` with an `authorize_uri` means 3-D Secure: open that "
    "page in the payer's browser, which ends at a page of ours that shows the outcome; poll, or wait for the "
    "webhook, meanwhile. A charge that nobody authorises fails when the acquirer gives it up. Test tokens: "
    "`tok_test_visa`, `tok_test_mastercard`, `tok_test_insufficient_funds`, `tok_test_declined`, "
    "`tok_test_expired`, `tok_test_used`, `tok_test_timeout`, `tok_test_3ds` (its page lets you authorise or "
    "refuse).",
    body=Body(
        PaymentRequest,
        {
            "token_id": "tok_test_visa",
            "amount": 150_000,
            "currency": "THB",
            "description": "Two tickets",
            "metadata": {"table": 4},
        },
    ),
    response=Answer(PaymentObject, PAID_BY_CARD),
    errors=(
        InsufficientFunds,
        CardDeclined,
        ExpiredCard,
        ProcessingError,
        TokenAlreadyUsed,
        BankNotConfigured,
        TooManyCardPayments,
        AcquirerUnavailable,
        SafeModeOn,
    ),
    headers=(usual_amounts.HEADER,),
)
list_ = _read(
    name="list_payments",
    summary="List payments",
    description="Newest first. A pending payment after its expiry is shown and filtered as `expired`.",
    query=PaymentQuery,
    response=page_of("payments", PaymentObject, PAYMENT, searched_to=NotRequired[SearchedTo]),
)
retrieve = _read(
    name="get_payment",
    summary="Retrieve a payment",
    description="Poll this while the customer pays, or if no webhook arrived.",
    response=Answer(PaymentObject, PAYMENT | {"unmatched_money": None}),
    errors=(PaymentNotFound,),
)
