"""The operations on payment links in the OpenAPI document."""

from functools import partial

from core.http.openapi import Tag, described
from core.http.scopes import Scope
from links.serializers import PaymentLinkQuery, PaymentLinkRequest
from links.shapes import PaymentLinkObject
from qrcodes.serializers import ImageQuery

_links = partial(described, __file__, tag=Tag.PAYMENT_LINKS)
_write, _read = partial(_links, scope=Scope.LINKS_WRITE), partial(_links, scope=Scope.PAYMENTS_READ)

create = _write("create_payment_link", body=PaymentLinkRequest, response=PaymentLinkObject)
list_ = _read(
    "list_payment_links",
    query=PaymentLinkQuery,
    response=PaymentLinkObject,
    rows="payment_links",
    page={"words": "payment links"},
)
retrieve = _read("get_payment_link", response=PaymentLinkObject)
picture = _read("get_payment_link_picture", query=ImageQuery)
deactivate = _write("deactivate_payment_link", response=PaymentLinkObject)
