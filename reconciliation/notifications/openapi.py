"""The notification endpoints in the OpenAPI document."""

from typing import Annotated, TypedDict

from banks.base import InvalidSignature, UnknownBank
from core.http import JSON
from core.objects import one_of
from core.openapi import Answer, Operation, Signature, Tag
from merchants.errors import CallerNotAllowed


class NotificationAnswer(TypedDict):
    """What the sandbox bank expects. Other banks get answers in their own format."""

    status: Annotated[str, one_of(["received", "parked"])]


HANDLING = (
    "A message that can be parsed is stored and applied. Any other one is stored for staff. Both are "
    "acknowledged, so that the bank stops sending."
)

create = Operation(
    name="receive_bank_notification",
    tag=Tag.BANKS,
    signature=Signature.NOTIFICATION_OF_SANDBOX_BANK,
    summary="The sandbox bank reports money",
    description=f"It signs the body in `Sandbox-Bank-Signature`. {HANDLING}",
    request_contents={JSON: {"type": "object"}},
    response=Answer(NotificationAnswer, {"status": "received"}),
    errors=(UnknownBank, InvalidSignature),
)
create_for_merchant = Operation(
    name="receive_linked_bank_notification",
    tag=Tag.BANKS,
    summary="A merchant's bank reports money",
    description="The secret in the path belongs to one merchant and its bank. The bank also calls from known "
    f"networks and authenticates by its own method; the format is its own too. {HANDLING}",
    request_contents={JSON: {"type": "object"}},
    responses={200: {JSON: {"type": "object", "additionalProperties": {"type": "string"}}}},
    errors=(UnknownBank, InvalidSignature, CallerNotAllowed),
)
