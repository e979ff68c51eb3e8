"""The operation on slips in the OpenAPI document."""

from core.http.openapi import Tag, described
from core.http.scopes import Scope
from reconciliation.slips.serializers import SlipRequest
from reconciliation.slips.shapes import SlipObject

check = described(
    __file__, "check_slip", tag=Tag.PAYMENTS, scope=Scope.PAYMENTS_READ, body=SlipRequest, response=SlipObject
)
