"""The operations on the exceptions of a payment in the OpenAPI document."""

from functools import partial

from core.http.openapi import Tag, described
from core.http.paging import Page, PageQuery
from core.http.scopes import Scope
from payments.shapes import PaymentExceptionObject
from reconciliation.exceptions.serializers import DecisionRequest, ReturnRequest

_payments = partial(described, __file__, tag=Tag.PAYMENTS, response=PaymentExceptionObject)

list_ = _payments(
    "list_payment_exceptions",
    scope=Scope.PAYMENTS_READ,
    query=PageQuery,
    rows="exceptions",
    page={"words": "the exceptions of a payment", "base": Page},
)
accept = _payments("accept_payment_exception", scope=Scope.EXCEPTIONS_WRITE, body=DecisionRequest)
send_back = _payments("return_payment_exception", scope=Scope.EXCEPTIONS_WRITE, body=ReturnRequest)
