"""The operations on settlements in the OpenAPI document."""

from functools import partial

from core.http.openapi import Tag, described
from core.http.paging import PeriodPageQuery
from core.http.scopes import Scope
from settlements.shapes import SettlementObject

_read = partial(described, __file__, tag=Tag.TRANSACTIONS, scope=Scope.PAYMENTS_READ)

list_ = _read("list_settlements", query=PeriodPageQuery, response=SettlementObject, rows="settlements")
retrieve = _read("get_settlement", response=SettlementObject)
