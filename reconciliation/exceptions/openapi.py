"""The operations on the exceptions of a payment in the OpenAPI document."""

from functools import partial
from typing import Any

from core.openapi import Answer, Body, Operation, Tag, page_of
from core.paging import Page, PageQuery
from core.scopes import Scope
from payments.errors import PaymentNotFound
from payments.shapes import PaymentExceptionObject
from reconciliation.exceptions.errors import (
    ExceptionNotAcceptable,
    ExceptionNotFound,
    ExceptionNotReturnable,
)
from reconciliation.exceptions.serializers import (
    DecisionRequest,
    ReturnRequest,
)

_decide = partial(Operation, tag=Tag.PAYMENTS, scope=Scope.EXCEPTIONS_WRITE)
EXCEPTION: dict[str, Any] = {
    "exception_id": "rcp_0oDFPauQc2XhYkVb7TfJ9mRwZsN",
    "reason": "amount_mismatch",
    "amount": 100_000,
    "amount_display": "1,000.00 THB",
    "status": "open",
    "at": "2026-11-21T03:05:42.304Z",
}
_DECISION = {"note": "The customer paid the rest in cash."}

list_ = Operation(
    name="list_payment_exceptions",
    tag=Tag.PAYMENTS,
    scope=Scope.PAYMENTS_READ,
    summary="List the exceptions of a payment",
    description="Money that arrived for the payment and did not fit: too little, too much, too early, late "
    "or twice. Newest first. Open ones wait until you or the operator decide. Money with an unknown "
    "reference is not here: `unmatched_money` of the payment names it, and the operator decides about it.",
    query=PageQuery,
    response=page_of(
        "exceptions", PaymentExceptionObject, EXCEPTION, words="the exceptions of a payment", base=Page
    ),
    errors=(PaymentNotFound,),
)
accept = _decide(
    name="accept_payment_exception",
    summary="Accept the money of an exception",
    description="The payment succeeds with the money that arrived, also if it is late or another amount "
    "(`amount_received`). Possible while the payment is pending or expired, so not for money that came "
    "twice, nor for money from before the code existed (`time_mismatch`), which the operator accepts. Only "
    "one decision counts: yours or the operator's.",
    body=Body(DecisionRequest, _DECISION),
    response=Answer(PaymentExceptionObject, EXCEPTION | {"status": "accepted"}),
    errors=(PaymentNotFound, ExceptionNotFound, ExceptionNotAcceptable),
)
send_back = _decide(
    name="return_payment_exception",
    summary="Return the money of an exception",
    description="The money goes back to the account that it came from. It is `sending_back` until the "
    "bank confirms, then `sent_back`; if the bank refuses it, it is `open` again. With `part` `excess`, an "
    "over-payment pays its payment, and only the rest goes back: `excess_sending_back`, `excess_sent_back`, "
    "`excess_open`. Only the operator can send it to another account. Only one decision counts: yours or the "
    "operator's.",
    body=Body(ReturnRequest, {"part": "all", "note": "Paid twice by mistake."}),
    response=Answer(PaymentExceptionObject, EXCEPTION | {"status": "sending_back"}),
    errors=(PaymentNotFound, ExceptionNotFound, ExceptionNotReturnable),
)
