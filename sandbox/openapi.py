"""The sandbox bank's API in the OpenAPI document."""

from functools import partial
from typing import Any

from core import money
from core.errors import InvalidParameters, InvalidRequest, PathNotFound, UnsupportedMediaType
from core.objects import id_schema
from core.openapi import Answer, Body, Operation, Signature, Tag
from core.scopes import Scope
from sandbox.errors import (
    InvalidDate,
    InvalidOrder,
    InvalidOrderSignature,
    OrderNotFound,
    OrderReferenceReused,
    TestModeOnly,
)
from sandbox.models import MAX_ENTRIES, SandboxEntryType, SandboxOrderStatus
from sandbox.scenarios import SCENARIOS
from sandbox.serializers import (
    EntriesQuery,
    SandboxPaymentRequest,
    SlipQuery,
    StatementFormatQuery,
    StatementQuery,
)
from sandbox.shapes import SandboxPaymentObject

create = Operation(
    name="pay_at_sandbox_bank",
    tag=Tag.SANDBOX,
    scope=Scope.PAYMENTS_WRITE,
    summary="Pay a QR code at the sandbox bank",
    description="Simulates the customer's banking app, for test keys. The scenario decides what the bank "
    "reports to the service, and when: "
    + "; ".join(f"`{name}` ({scenario.label_en.lower()})" for name, scenario in SCENARIOS.items())
    + ". Inquiries and the statement also show what the bank has not reported.",
    body=Body(
        SandboxPaymentRequest,
        {
            "qr_data": "00020101021230630016A000000677010112011509940001580400102207K2M9QX4T1B8V5N3C6ZD"
            "530376454071500.005802TH63044AFB",
            "scenario": "paid",
        },
    ),
    response=Answer(
        SandboxPaymentObject,
        {"bank_transaction_id": "sbp_0oDFPXrTS4spMBBZozkykNHKN2t", "scenario": "paid", "accepted": True},
    ),
    errors=(PathNotFound, TestModeOnly),
)


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "required": list(properties), "properties": properties}


_ask = partial(Operation, tag=Tag.BANKS, signature=Signature.REQUEST_TO_SANDBOX_BANK)
_FILE = {200: {"text/plain": {"type": "string"}, "text/csv": {"type": "string"}}}
own_statement = Operation(
    name="download_sandbox_bank_statement",
    tag=Tag.SANDBOX,
    scope=Scope.PAYMENTS_READ,
    summary="Download a day's statement of the sandbox bank",
    description="For test keys: the credits and reversals of the merchant's own biller id on a day in "
    "Bangkok, with those that no callback reported. In the banks' cross-bank format (lines of 256 characters "
    "in TIS-620), or as CSV.",
    query=StatementFormatQuery,
    responses=_FILE,
    errors=(PathNotFound, TestModeOnly, InvalidDate),
)

_TEXT = {"type": "string"}
_BAHT = {"type": "string", "pattern": r"^\d+\.\d{2}$", "description": "Baht."}
_ORDER: dict[str, Any] = {
    "reference": {"type": "string", "description": "The service's id of the order."},
    "bank_reference": id_schema("sbo_"),
    "amount": _BAHT,
    "currency": {"type": "string", "const": money.CURRENCY},
    "status": {"type": "string", "enum": SandboxOrderStatus.values},
    "reason": {"type": "string", "description": "Why it failed or was returned, otherwise empty."},
}
_STANDING = {"application/json": _object(_ORDER)}
order = _ask(
    name="order_from_sandbox_bank",
    summary="Order a payment from the sandbox bank",
    description="The service orders refunds and withdrawals of test merchants here. It signs the request in "
    "`Sandbox-Bank-Signature`. A repeated order gets the same answer and is not executed again.",
    request_contents={"application/json": {"type": "object"}},
    responses={200: _STANDING},
    errors=(
        PathNotFound,
        InvalidOrderSignature,
        InvalidRequest,
        UnsupportedMediaType,
        InvalidOrder,
        OrderReferenceReused,
    ),
)
inquire = _ask(
    name="inquire_at_sandbox_bank",
    summary="Ask the sandbox bank about an order",
    description="By the service's id of the order. The request is signed like the order.",
    responses={200: _STANDING},
    errors=(PathNotFound, InvalidOrderSignature, OrderNotFound),
)

_ENTRY: dict[str, Any] = {
    "transaction_id": id_schema("sbp_"),
    "type": {"type": "string", "enum": SandboxEntryType.values},
    "biller_id": _TEXT,
    "reference1": _TEXT,
    "reference2": _TEXT,
    "reference3": _TEXT,
    "amount": _BAHT,
    "currency": {"type": "string", "const": money.CURRENCY},
    "paid_at": {"type": "string", "format": "date-time", "description": "The bank's time, in Bangkok."},
    "payer_name": _TEXT,
    "payer_bank_code": {"type": "string", "pattern": r"^\d{3}$"},
    "payer_account": _TEXT,
    "slip_reference": {"type": "string", "description": "The id on the payer's slip, empty without a slip."},
}
_FOUND = _object({"transactions": {"type": "array", "maxItems": MAX_ENTRIES, "items": _object(_ENTRY)}})

transactions = _ask(
    name="list_sandbox_bank_transactions",
    summary="Ask the sandbox bank what was paid for a code",
    description="The service inquires codes of test merchants here. The request is signed like an order. "
    "The answer has the same fields as callbacks. It shows a transaction as soon as it is paid or reported, "
    "also if its callback comes later or never.",
    query=EntriesQuery,
    responses={200: {"application/json": _FOUND}},
    errors=(PathNotFound, InvalidOrderSignature, InvalidParameters),
)
slip = _ask(
    name="look_up_slip_at_sandbox_bank",
    summary="Ask the sandbox bank about a payer's slip",
    description="The service looks up the transfer on a slip here, for staff. The request is signed like an "
    "order. The list is empty if the bank does not know the transfer.",
    query=SlipQuery,
    responses={200: {"application/json": _FOUND}},
    errors=(PathNotFound, InvalidOrderSignature, InvalidParameters),
)
statement = _ask(
    name="fetch_sandbox_bank_statement",
    summary="Fetch a day's statement from the sandbox bank",
    description="The credits and reversals of a biller on a day in Bangkok. The request is signed like an "
    "order.",
    query=StatementQuery,
    responses=_FILE,
    errors=(PathNotFound, InvalidOrderSignature, InvalidParameters),
)
