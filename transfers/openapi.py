"""The operation on banks in the OpenAPI document."""

from core.http.openapi import Tag, described
from core.http.scopes import Scope
from transfers.shapes import BankList

list_banks = described(
    __file__, "list_banks", tag=Tag.WITHDRAWALS, scope=Scope.PAYMENTS_READ, response=BankList
)
