"""The operations on withdrawals, and on the banks that they can go to, in the OpenAPI document."""

from functools import partial

from core.http.openapi import Tag, described
from core.http.scopes import Scope
from withdrawals.serializers import WithdrawalQuery, WithdrawalRequest
from withdrawals.shapes import BankList, WithdrawalObject

_write = partial(described, __file__, tag=Tag.WITHDRAWALS, scope=Scope.WITHDRAWALS_WRITE)
_read = partial(described, __file__, tag=Tag.WITHDRAWALS, scope=Scope.PAYMENTS_READ)

create = _write("create_withdrawal", body=WithdrawalRequest, response=WithdrawalObject)
list_ = _read("list_withdrawals", query=WithdrawalQuery, response=WithdrawalObject, rows="withdrawals")
retrieve = _read("get_withdrawal", response=WithdrawalObject)
cancel = _write("cancel_withdrawal", response=WithdrawalObject)
list_banks = _read("list_banks", response=BankList)
