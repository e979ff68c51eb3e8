from typing import Annotated, TypedDict

from core.http.objects import id_schema, one_of
from sandbox.scenarios import SCENARIOS


class SandboxPaymentObject(TypedDict):
    bank_transaction_id: Annotated[
        str, id_schema("sbp_"), "The bank's id of the transfer: `bank_reference` of the payment."
    ]
    scenario: Annotated[str, one_of(SCENARIOS)]
    accepted: bool
