"""The `webhooks` section of the OpenAPI document, one entry for each type of event."""

from drf_spectacular.plumbing import ComponentRegistry

from apidocs import object_schemas
from apidocs.components import PARTS, Json
from core.failures import DECLINED_BY_BANK, REJECTED_BY_BANK, RETURNED_BY_BANK
from core.http import JSON
from core.objects import INSTANT, ObjectType, id_schema
from core.openapi import Tag
from payments.openapi import PAYMENT
from payments.shapes import PaymentEventData, PaymentExceptionEventData
from reconciliation.exceptions.openapi import EXCEPTION
from refunds.openapi import COMPLETED
from refunds.shapes import RefundObject
from webhooks.models import PING, EventType
from webhooks.shapes import PingData
from withdrawals.openapi import SUCCEEDED, WITHDRAWAL
from withdrawals.shapes import WithdrawalObject

PAYMENT_DATA: Json = {
    name: PAYMENT[name]
    for name in PaymentEventData.__annotations__
    if name in PaymentEventData.__required_keys__
}
EXCEPTION_DATA: Json = PAYMENT_DATA | {"amount_received": 100_000, "exception": EXCEPTION}
# The summary of each message, the declaration of its data, and an example of them.
MESSAGES: dict[str, tuple[str, ObjectType, Json]] = {
    PING: ("Checks that an endpoint answers", PingData, {"webhook_id": "wh_0oDFPev2meeI9Zar81ilSZQbdAw"}),
    EventType.PAYMENT_PENDING: (
        "A code was generated and is not paid yet",
        PaymentEventData,
        PAYMENT_DATA | {"status": "pending"},
    ),
    EventType.PAYMENT_SUCCEEDED: ("A payment is completed", PaymentEventData, PAYMENT_DATA),
    EventType.PAYMENT_FAILED: (
        "A payment was declined (status failed) or not paid in time (status expired)",
        PaymentEventData,
        PAYMENT_DATA | {"status": "failed", "failure_code": DECLINED_BY_BANK},
    ),
    EventType.PAYMENT_EXCEPTION: (
        "Money that does not fit arrived for a payment, and waits for a decision",
        PaymentExceptionEventData,
        EXCEPTION_DATA | {"status": "expired"},
    ),
    EventType.PAYMENT_EXCEPTION_RESOLVED: (
        "Such money was accepted or attached, or it went back",
        PaymentExceptionEventData,
        EXCEPTION_DATA | {"exception": EXCEPTION | {"status": "accepted"}},
    ),
    EventType.WITHDRAWAL_PENDING: (
        "A withdrawal was made and its amount is reserved",
        WithdrawalObject,
        WITHDRAWAL,
    ),
    EventType.WITHDRAWAL_PROCESSED: (
        "The bank has the order",
        WithdrawalObject,
        WITHDRAWAL | {"status": "processing"},
    ),
    EventType.WITHDRAWAL_SUCCEEDED: ("The money arrived", WithdrawalObject, SUCCEEDED),
    EventType.WITHDRAWAL_FAILED: (
        "The money did not arrive, or came back; it is in the balance again",
        WithdrawalObject,
        SUCCEEDED | {"status": "failed", "failure_code": RETURNED_BY_BANK},
    ),
    EventType.REFUND_COMPLETED: ("The money went back", RefundObject, COMPLETED),
    EventType.REFUND_FAILED: (
        "The money could not be sent back; it is in the balance again",
        RefundObject,
        COMPLETED | {"status": "failed", "failure_code": REJECTED_BY_BANK, "completed_at": None},
    ),
}
TIMESTAMP = "2026-11-21T03:05:42.310Z"
EVENT_ID = "evt_0oDFPazyVRoGTTDIuRe7QK7m3b4"


def describe(registry: ComponentRegistry) -> Json:
    """Path items by type of event."""
    return {str(name): _message(registry, name, *parts) for name, parts in MESSAGES.items()}


def _message(
    registry: ComponentRegistry, error_type: str, summary: str, data: ObjectType, example: Json
) -> Json:
    message = {"event": error_type, "event_id": EVENT_ID, "data": example, "timestamp": TIMESTAMP}
    body = {
        "type": "object",
        "required": list(message),
        "properties": {
            "event": {"type": "string", "const": error_type},
            "event_id": id_schema("evt_"),
            "data": object_schemas.reference(data, registry),
            "timestamp": {"type": "string", **INSTANT},
        },
    }
    operation = {
        "operationId": "on_" + error_type.replace(".", "_"),
        "summary": summary,
        "tags": [Tag.WEBHOOKS.value],
        # The receiver verifies the signature.
        "security": [],
        "parameters": PARTS["webhooks"]["parameters"],
        "requestBody": {"required": True, "content": {JSON: {"schema": body, "example": message}}},
        "responses": PARTS["webhooks"]["responses"],
    }
    return {"post": operation}
