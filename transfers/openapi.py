"""The operation on banks in the OpenAPI document."""

from core import thaibanks
from core.openapi import Body, Operation, Tag
from core.scopes import Scope
from transfers.serializers import BankList
from transfers.shapes import bank_object

list_banks = Operation(
    name="list_banks",
    tag=Tag.WITHDRAWALS,
    scope=Scope.PAYMENTS_READ,
    summary="List the banks",
    description="All banks that money can be sent to, by code: for a form in which somebody chooses a bank.",
    response=Body(
        BankList, {"banks": [bank_object(bank) for bank in thaibanks.BANKS if bank.alias == "scb"]}
    ),
)
