"""The doors for banks, as the OpenAPI document tells them."""

from banks.base import InvalidSignature, UnknownBank
from core.http import JSON
from core.openapi import Body, Operation, Tag
from merchants.errors import CallerNotAllowed
from reconciliation.notifications.serializers import NotificationAnswer

HANDLING = (
    "What is understood is kept and acted on, what is not is parked for staff; both are answered so that the "
    "bank stops sending."
)

create = Operation(
    name="receive_bank_notification",
    tag=Tag.BANKS,
    summary="The sandbox bank reports money",
    description=f"It signs the body in `Sandbox-Bank-Signature`. {HANDLING}",
    request_contents={JSON: {"type": "object"}},
    response=Body(NotificationAnswer, {"status": "received"}),
    errors=(UnknownBank, InvalidSignature),
)
create_for_merchant = Operation(
    name="receive_linked_bank_notification",
    tag=Tag.BANKS,
    summary="A merchant's bank reports money",
    description="Each bank speaks its own format and proves itself in its own way, on top of the secret in "
    f"the path, which it shares with one merchant, and of the networks it calls from. {HANDLING}",
    request_contents={JSON: {"type": "object"}},
    responses={200: {JSON: {"type": "object", "additionalProperties": {"type": "string"}}}},
    errors=(UnknownBank, InvalidSignature, CallerNotAllowed),
)
