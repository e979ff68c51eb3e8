"""The door for banks, as the OpenAPI document tells it."""

from banks.base import BadSignature, UnknownBank
from core.openapi import Operation, Shown, Tag
from receipts.serializers import NoticeAnswer

create = Operation(
    name="receive_bank_notice",
    tag=Tag.BANKS,
    summary="A bank reports money",
    description="Each bank speaks its own format and proves itself in its own way; the sandbox bank signs "
    "the body in `Sandbox-Bank-Signature`. What is understood is kept and acted on, what is not is parked "
    "for staff; both are answered so that the bank stops sending.",
    accepts={"application/json": {"type": "object"}},
    answer=Shown(NoticeAnswer, {"status": "received"}),
    refusals=(UnknownBank, BadSignature),
)
