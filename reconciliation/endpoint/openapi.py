"""The notification endpoints in the OpenAPI document."""

from functools import partial
from typing import Annotated, TypedDict

from core.http.objects import one_of
from core.http.openapi import Signature, Tag, described


class NotificationAnswer(TypedDict):
    """What the sandbox bank expects. Other banks get answers in their own format."""

    status: Annotated[str, one_of(["received", "held"])]


_banks = partial(described, __file__, tag=Tag.BANKS)

create = _banks(
    "receive_bank_notification", signature=Signature.NOTIFICATION_OF_SANDBOX_BANK, response=NotificationAnswer
)
create_for_merchant = _banks("receive_linked_bank_notification")
