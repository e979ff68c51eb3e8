"""The operations on refunds in the OpenAPI document."""

from functools import partial

from core.http.openapi import Tag, described
from core.http.scopes import Scope
from refunds.serializers import ClaimLinkRequest, DestinationRequest, RefundQuery, RefundRequest
from refunds.shapes import ClaimLinkObject, ClaimLinkSecret, RefundObject

_write = partial(described, __file__, tag=Tag.REFUNDS, scope=Scope.REFUNDS_WRITE)
_read = partial(described, __file__, tag=Tag.REFUNDS, scope=Scope.PAYMENTS_READ)

create = _write("create_refund", body=RefundRequest, response=RefundObject)
list_ = _read("list_refunds", query=RefundQuery, response=RefundObject, rows="refunds")
retrieve = _read("get_refund", response=RefundObject)
set_destination = _write("set_refund_destination", body=DestinationRequest, response=RefundObject)
create_claim_link = _write("create_claim_link", body=ClaimLinkRequest, response=ClaimLinkObject)
claim_link = _write("get_claim_link", response=ClaimLinkSecret)
cancel = _write("cancel_refund", response=RefundObject)
