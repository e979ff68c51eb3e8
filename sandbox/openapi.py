"""The sandbox bank's API, as the OpenAPI document tells it."""

from typing import Any

from core import money
from core.errors import InvalidParameters, InvalidRequest, PathNotFound, UnsupportedMediaType
from core.openapi import Body, Operation, Tag
from core.response_fields import id_schema
from core.scopes import Scope
from sandbox.entries import MAX_ENTRIES
from sandbox.errors import (
    InvalidDate,
    InvalidOrder,
    InvalidOrderSignature,
    OrderNotFound,
    OrderReferenceReused,
    TestModeOnly,
)
from sandbox.models import SandboxEntryType, SandboxOrderStatus
from sandbox.scenarios import SCENARIOS
from sandbox.serializers import (
    EntriesQuery,
    SandboxPaymentObject,
    SandboxPaymentRequest,
    SlipQuery,
    StatementFormatQuery,
    StatementQuery,
)

create = Operation(
    name="pay_at_sandbox_bank",
    tag=Tag.SANDBOX,
    scope=Scope.PAYMENTS_WRITE,
    summary="Pay a QR code at the sandbox bank",
    description="Plays the customer's banking app for test keys. What the bank then tells the service, and "
    "when, is the scenario's: "
    + "; ".join(f"`{scenario.name}` ({scenario.label_en.lower()})" for scenario in SCENARIOS.values())
    + ". What the bank never tells, or not yet, it says when asked, and in its statement.",
    body=Body(
        SandboxPaymentRequest,
        {
            "qr_data": "00020101021230630016A000000677010112011509940001580400102207K2M9QX4T1B8V5N3C6ZD"
            "530376454071500.005802TH63044AFB",
            "scenario": "paid",
        },
    ),
    response=Body(
        SandboxPaymentObject,
        {
            "bank_transaction_id": "sbp_0oDFPXrTS4spMBBZozkykNHKN2t",
            "scenario": "paid",
            "accepted": True,
        },
    ),
    errors=(PathNotFound, TestModeOnly),
)


def _closed(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "required": list(properties),
        "properties": properties,
        "additionalProperties": False,
    }


_FILE = {200: {"text/plain": {"type": "string"}, "text/csv": {"type": "string"}}}
own_statement = Operation(
    name="download_sandbox_bank_statement",
    tag=Tag.SANDBOX,
    scope=Scope.PAYMENTS_READ,
    summary="Download a day's statement of the sandbox bank",
    description="For test keys: what came to the merchant's own biller id and what went back on a day in "
    "Bangkok, also what no callback told. In the banks' cross-bank format (lines of 256 characters in "
    "TIS-620), or as CSV.",
    query=StatementFormatQuery,
    responses=_FILE,
    errors=(PathNotFound, TestModeOnly, InvalidDate),
)

_TEXT = {"type": "string"}
_BAHT = {"type": "string", "pattern": r"^\d+\.\d{2}$", "description": "Baht, as banks write it."}
_ORDER: dict[str, Any] = {
    "reference": {"type": "string", "description": "The service's own id of the order."},
    "bank_reference": id_schema("sbo_"),
    "amount": _BAHT,
    "currency": {"type": "string", "const": money.CURRENCY},
    "status": {"type": "string", "enum": SandboxOrderStatus.values},
    "reason": {"type": "string", "description": "Why it failed or came back; else empty."},
}
_STANDING = {"application/json": _closed(_ORDER)}
order = Operation(
    name="order_from_sandbox_bank",
    tag=Tag.BANKS,
    summary="Order a payment from the sandbox bank",
    description="Here the service orders refunds and withdrawals of test merchants, and signs what it asks "
    "for in `Sandbox-Bank-Signature`. The same order again gets the answer of the first.",
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
inquire = Operation(
    name="inquire_at_sandbox_bank",
    tag=Tag.BANKS,
    summary="Ask the sandbox bank about an order",
    description="By the service's own reference; signed like the order.",
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
    "slip_reference": {"type": "string", "description": "What the payer's slip calls it; empty without one."},
}
_FOUND = _closed({"transactions": {"type": "array", "maxItems": MAX_ENTRIES, "items": _closed(_ENTRY)}})

transactions = Operation(
    name="list_sandbox_bank_transactions",
    tag=Tag.BANKS,
    summary="Ask the sandbox bank what was paid for a code",
    description="Here the service inquires after codes of test merchants; signed like an order. The answer "
    "holds what a callback would say of each transaction, as soon as it was paid or told of, whichever came "
    "first: so also what no callback tells, or only later.",
    query=EntriesQuery,
    responses={200: {"application/json": _FOUND}},
    errors=(PathNotFound, InvalidOrderSignature, InvalidParameters),
)
slip = Operation(
    name="look_up_slip_at_sandbox_bank",
    tag=Tag.BANKS,
    summary="Ask the sandbox bank about a payer's slip",
    description="Here staff of the service ask about the transfer that a slip names; signed like an order. "
    "Nothing is found of a transfer that the bank does not know.",
    query=SlipQuery,
    responses={200: {"application/json": _FOUND}},
    errors=(PathNotFound, InvalidOrderSignature, InvalidParameters),
)
statement = Operation(
    name="fetch_sandbox_bank_statement",
    tag=Tag.BANKS,
    summary="Fetch a day's statement from the sandbox bank",
    description="Here the service fetches what came to a biller on a day in Bangkok; signed like an order.",
    query=StatementQuery,
    responses=_FILE,
    errors=(PathNotFound, InvalidOrderSignature, InvalidParameters),
)
