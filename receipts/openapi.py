"""The doors for banks, as the OpenAPI document tells them."""

from banks.base import BadSignature, UnknownBank
from core.http import JSON
from core.openapi import Operation, Shown, Tag
from merchants.errors import CallerNotAllowed
from receipts.serializers import NoticeAnswer

WHAT_BECOMES = (
    "What is understood is kept and acted on, what is not is parked for staff; both are answered so that the "
    "bank stops sending."
)

create = Operation(
    name="receive_bank_notice",
    tag=Tag.BANKS,
    summary="The sandbox bank reports money",
    description=f"It signs the body in `Sandbox-Bank-Signature`. {WHAT_BECOMES}",
    accepts={JSON: {"type": "object"}},
    answer=Shown(NoticeAnswer, {"status": "received"}),
    refusals=(UnknownBank, BadSignature),
)
knock = Operation(
    name="receive_linked_bank_notice",
    tag=Tag.BANKS,
    summary="A merchant's bank reports money",
    description="Each bank speaks its own format and proves itself in its own way, on top of the secret in "
    f"the path, which it shares with one merchant, and of the networks it calls from. {WHAT_BECOMES}",
    accepts={JSON: {"type": "object"}},
    contents={200: {JSON: {"type": "object", "additionalProperties": {"type": "string"}}}},
    refusals=(UnknownBank, BadSignature, CallerNotAllowed),
)
