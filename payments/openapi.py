"""Payment operations in the OpenAPI document."""

from functools import partial
from typing import Annotated, Any, NotRequired

from core.http.objects import PaymentId
from core.http.openapi import Tag, described, words_of
from core.http.scopes import Scope
from payments.serializers import PaymentQuery, PaymentRequest
from payments.shapes import PaymentObject

SearchedTo = Annotated[
    PaymentId,
    "Only if older payments of the period (of codes and by card) were not read: continue with this id as "
    "`after` (or as `before`). `total` counts what was found from the cursor until here.",
]
_payment = partial(described, __file__, tag=Tag.PAYMENTS, response=PaymentObject)
PAYMENT: dict[str, Any] = words_of(__file__)["list_payments"]["response"]

create = _payment("create_payment", scope=Scope.PAYMENTS_WRITE, body=PaymentRequest)
list_ = _payment(
    "list_payments",
    scope=Scope.PAYMENTS_READ,
    query=PaymentQuery,
    rows="payments",
    page={"searched_to": NotRequired[SearchedTo]},
)
retrieve = _payment("get_payment", scope=Scope.PAYMENTS_READ)
lift_hold = _payment("lift_payment_hold", scope=Scope.PAYMENTS_WRITE)
