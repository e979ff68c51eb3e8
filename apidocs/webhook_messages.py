"""The `webhooks` section of the OpenAPI document, one entry for each type of event."""

from drf_spectacular.plumbing import ComponentRegistry

from apidocs import object_schemas
from apidocs.components import PARTS, Json
from core.failures import DECLINED_BY_BANK, REJECTED_BY_BANK, RETURNED_BY_BANK
from core.http.objects import INSTANT, ObjectType, id_schema
from core.http.openapi import Tag, words_of
from core.http.responses import JSON
from payments.openapi import PAYMENT
from payments.shapes import PaymentEventData, PaymentExceptionEventData, PaymentFeeEventData
from reconciliation.exceptions import openapi as exceptions
from refunds import openapi as refunds
from refunds.shapes import RefundObject
from settlements import openapi as settlements
from settlements.shapes import SettlementObject
from webhooks.models import PING, EventType
from webhooks.shapes import PingData
from withdrawals import openapi as withdrawals
from withdrawals.shapes import WithdrawalObject

PAYMENT_DATA: Json = {
    name: PAYMENT[name]
    for name in PaymentEventData.__annotations__
    if name in PaymentEventData.__required_keys__
}
EXCEPTION: Json = words_of(exceptions.__file__)["list_payment_exceptions"]["response"]
COMPLETED: Json = words_of(refunds.__file__)["get_refund"]["response"]
WITHDRAWAL, SUCCEEDED = (
    words_of(withdrawals.__file__)[name]["response"] for name in ("create_withdrawal", "get_withdrawal")
)
SETTLEMENT: Json = words_of(settlements.__file__)["get_settlement"]["response"]
FEE_DATA: Json = PAYMENT_DATA | {"fee": 5_475, "fee_vat": 383, "net": 144_142}
EXCEPTION_DATA: Json = PAYMENT_DATA | {"amount_received": 100_000, "exception": EXCEPTION}
# The declaration of the data of each message, and an example of them.
MESSAGES: dict[str, tuple[ObjectType, Json]] = {
    PING: (PingData, {"webhook_id": "wh_0oDFPev2meeI9Zar81ilSZQbdAw"}),
    EventType.PAYMENT_PENDING: (PaymentEventData, PAYMENT_DATA | {"status": "pending"}),
    EventType.PAYMENT_SUCCEEDED: (PaymentEventData, PAYMENT_DATA),
    EventType.PAYMENT_FAILED: (
        PaymentEventData,
        PAYMENT_DATA | {"status": "failed", "failure_code": DECLINED_BY_BANK},
    ),
    EventType.PAYMENT_FEE_KNOWN: (PaymentFeeEventData, FEE_DATA),
    EventType.PAYMENT_HOLD_LIFTED: (PaymentEventData, PAYMENT_DATA | {"payer_matches": "no"}),
    EventType.PAYMENT_EXCEPTION: (PaymentExceptionEventData, EXCEPTION_DATA | {"status": "expired"}),
    EventType.PAYMENT_EXCEPTION_RESOLVED: (
        PaymentExceptionEventData,
        EXCEPTION_DATA | {"exception": EXCEPTION | {"status": "accepted"}},
    ),
    EventType.SETTLEMENT_ARRIVED: (SettlementObject, SETTLEMENT),
    EventType.WITHDRAWAL_PENDING: (WithdrawalObject, WITHDRAWAL),
    EventType.WITHDRAWAL_PROCESSED: (WithdrawalObject, WITHDRAWAL | {"status": "processing"}),
    EventType.WITHDRAWAL_SUCCEEDED: (WithdrawalObject, SUCCEEDED),
    EventType.WITHDRAWAL_FAILED: (
        WithdrawalObject,
        SUCCEEDED | {"status": "failed", "failure_code": RETURNED_BY_BANK},
    ),
    EventType.REFUND_COMPLETED: (RefundObject, COMPLETED),
    EventType.REFUND_FAILED: (
        RefundObject,
        COMPLETED | {"status": "failed", "failure_code": REJECTED_BY_BANK, "completed_at": None},
    ),
}
TIMESTAMP = "2026-11-21T03:05:42.310Z"
EVENT_ID = "evt_0oDFPazyVRoGTTDIuRe7QK7m3b4"


def describe(registry: ComponentRegistry) -> Json:
    """Path items by type of event."""
    return {str(name): _message(registry, str(name), *parts) for name, parts in MESSAGES.items()}


def _message(registry: ComponentRegistry, name: str, data: ObjectType, example: Json) -> Json:
    message = {"event": name, "event_id": EVENT_ID, "data": example, "timestamp": TIMESTAMP}
    body = {
        "type": "object",
        "required": list(message),
        "properties": {
            "event": {"type": "string", "const": name},
            "event_id": id_schema("evt_"),
            "data": object_schemas.reference(data, registry),
            "timestamp": {"type": "string", **INSTANT},
        },
    }
    operation = {
        "operationId": "on_" + name.replace(".", "_"),
        "summary": PARTS["webhooks"]["summaries"][name],
        "tags": [Tag.WEBHOOKS.value],
        # The receiver verifies the signature.
        "security": [],
        "parameters": PARTS["webhooks"]["parameters"],
        "requestBody": {"required": True, "content": {JSON: {"schema": body, "example": message}}},
        "responses": PARTS["webhooks"]["responses"],
    }
    return {"post": operation}
