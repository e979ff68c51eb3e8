"""The sandbox bank's API in the OpenAPI document."""

from functools import partial

from core.http.openapi import Signature, Tag, described
from core.http.scopes import Scope
from sandbox.serializers import (
    EntriesQuery,
    SandboxPaymentRequest,
    SlipQuery,
    StatementFormatQuery,
    StatementQuery,
)
from sandbox.shapes import SandboxPaymentObject

_merchants = partial(described, __file__, tag=Tag.SANDBOX)
_signed = partial(described, __file__, tag=Tag.BANKS, signature=Signature.REQUEST_TO_SANDBOX_BANK)

create = _merchants(
    "pay_at_sandbox_bank",
    scope=Scope.PAYMENTS_WRITE,
    body=SandboxPaymentRequest,
    response=SandboxPaymentObject,
)
own_statement = _merchants(
    "download_sandbox_bank_statement", scope=Scope.PAYMENTS_READ, query=StatementFormatQuery
)
order = _signed("order_from_sandbox_bank")
inquire = _signed("inquire_at_sandbox_bank")
transactions = _signed("list_sandbox_bank_transactions", query=EntriesQuery)
slip = _signed("look_up_slip_at_sandbox_bank", query=SlipQuery)
statement = _signed("fetch_sandbox_bank_statement", query=StatementQuery)
