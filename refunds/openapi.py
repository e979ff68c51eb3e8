"""The operations on refunds in the OpenAPI document."""

from functools import partial

from approvals.payout_accounts import PayoutAccountNotAllowed, PayoutAccountTooNew
from core.openapi import Answer, Body, Link, Operation, Tag, page_of
from core.scopes import Scope
from ledger.errors import InsufficientFunds
from merchants.errors import BankNotConfigured
from payments.errors import PaymentNotFound, PaymentNotRefundable, RefundAmountExceeded
from refunds.errors import (
    ClaimLinkNotFound,
    PartialRefundNotSupported,
    RefundNotAddressable,
    RefundNotCancelable,
    RefundNotFound,
    TooManyClaimLinks,
    TooManyPendingRefunds,
)
from refunds.serializers import ClaimLinkRequest, DestinationRequest, RefundQuery, RefundRequest
from refunds.shapes import ClaimLinkObject, ClaimLinkSecret, RefundObject

_write = partial(Operation, tag=Tag.REFUNDS, scope=Scope.REFUNDS_WRITE)
_read = partial(Operation, tag=Tag.REFUNDS, scope=Scope.PAYMENTS_READ)
_PAYEE = {"bank_code": "014", "bank_account": "4051234567", "account_name": "Somchai Jaidee"}
_GIVEN = {
    "payment_id": "pay_0oDFPZjiZAWmp6O2BO6aMzhgtUt",
    "amount": 50_000,
    "reason": "requested_by_customer",
    "note": "one dish was cold",
    "metadata": {"table": 4},
}
REFUND = _GIVEN | {
    "amount_display": "500.00 THB",
    "refund_id": "ref_0oDFPh3pEwVnYw5cJm8qTzLxKd2",
    "transaction_id": "txn_0oDFPh8sRkQxZv6bNf4gUyMwJe7",
    "currency": "THB",
    "status": "pending",
    "pending_reason": "processing",
    "awaiting_approval": False,
    "failure_code": None,
    "created_at": "2026-11-21T04:10:00.250Z",
    "updated_at": "2026-11-21T04:10:00.250Z",
    "completed_at": None,
}
COMPLETED = REFUND | {
    "status": "completed",
    "pending_reason": None,
    "updated_at": "2026-11-21T04:10:03.871Z",
    "completed_at": "2026-11-21T04:10:03.871Z",
}

create = _write(
    name="create_refund",
    summary="Refund a payment",
    description="Refunds the payment in full or in part. A payment can have several refunds. The money is "
    "reserved at once and sent in the background; a webhook reports the result. The payment becomes "
    "`refunded` when it is refunded in full. A refund to another account than the payer's is "
    "`awaiting_approval` first if it exceeds the operator's limits, per refund and per 24 hours.",
    body=Body(RefundRequest, _GIVEN | {"destination": _PAYEE}),
    response=Answer(RefundObject, REFUND),
    errors=(
        PaymentNotFound, PaymentNotRefundable, RefundAmountExceeded, TooManyPendingRefunds,
        PartialRefundNotSupported, InsufficientFunds, BankNotConfigured, PayoutAccountNotAllowed,
        PayoutAccountTooNew,
    ),
    links=(
        Link("get_refund", "refund_id"),
        Link("set_refund_destination", "refund_id"),
        Link("cancel_refund", "refund_id"),
    ),
)  # fmt: skip
list_ = _read(
    name="list_refunds",
    summary="List refunds",
    description="Newest first.",
    query=RefundQuery,
    response=page_of("refunds", RefundObject, COMPLETED),
)
retrieve = _read(
    name="get_refund",
    summary="Retrieve a refund",
    description="`pending_reason` says what a `pending` refund waits for.",
    response=Answer(RefundObject, COMPLETED),
    errors=(RefundNotFound,),
)
set_destination = _write(
    name="set_refund_destination",
    summary="Set the destination of a refund",
    description="For a refund that is `awaiting_destination`, because no account of the payer is known.",
    body=Body(DestinationRequest, _PAYEE),
    response=Answer(RefundObject, REFUND),
    errors=(
        RefundNotFound,
        RefundNotAddressable,
        BankNotConfigured,
        PayoutAccountNotAllowed,
        PayoutAccountTooNew,
    ),
    links=(Link("get_refund", "refund_id"),),
)
_CLAIM_LINK = {
    "refund_id": REFUND["refund_id"],
    "status": "open",
    "tries_left": 5,
    "created_at": "2026-11-21T04:10:00.250Z",
    "expires_at": "2026-11-24T04:10:00.250Z",
    "used_at": None,
    "revoked_at": None,
}
create_claim_link = _write(
    name="create_claim_link",
    summary="Let the payer name the account of a refund",
    description="For a refund that is `awaiting_destination`. The payer opens the link, proves the payment "
    "by its slip or by the account that it was paid from, and names the account. A new link replaces the "
    "earlier one. The response does not contain the address.",
    body=Body(ClaimLinkRequest, {"expires_in_hours": 72}),
    response=Answer(ClaimLinkObject, _CLAIM_LINK),
    errors=(RefundNotFound, RefundNotAddressable, TooManyClaimLinks),
    links=(Link("get_claim_link", "refund_id"), Link("get_refund", "refund_id")),
)
claim_link = _write(
    name="get_claim_link",
    summary="Reveal the claim link of a refund",
    description="The newest link, with its address.",
    response=Answer(
        ClaimLinkSecret,
        _CLAIM_LINK | {"claim_url": "https://pay.example/claim/clt_2mCq7Lx0vYdRk4TnWb8ZsPfGh1JcAeUo"},
    ),
    errors=(RefundNotFound, ClaimLinkNotFound),
)
cancel = _write(
    name="cancel_refund",
    summary="Cancel a refund",
    description="Possible until the bank has the order. The money is available again. No webhook is sent.",
    response=Answer(RefundObject, REFUND | {"status": "canceled", "pending_reason": None}),
    errors=(RefundNotFound, RefundNotCancelable),
    links=(Link("get_refund", "refund_id"),),
)
