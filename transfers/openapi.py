"""The operation on banks in the OpenAPI document."""

from typing import TypedDict

from core import thaibanks
from core.openapi import Answer, Operation, Tag
from core.scopes import Scope
from transfers.shapes import BankObject, bank_object


class BankList(TypedDict):
    """All banks, by code."""

    banks: list[BankObject]


list_banks = Operation(
    name="list_banks",
    tag=Tag.WITHDRAWALS,
    scope=Scope.PAYMENTS_READ,
    summary="List the banks",
    description="All banks that money can be sent to, by code: for a form in which somebody chooses a bank.",
    response=Answer(
        BankList, {"banks": [bank_object(bank) for bank in thaibanks.BANKS if bank.alias == "scb"]}
    ),
)
