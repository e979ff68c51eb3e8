"""The test clock in the OpenAPI document."""

from functools import partial

from core.http.openapi import Tag, described
from core.http.scopes import Scope
from testclock.serializers import AdvanceRequest
from testclock.shapes import AdvancedClockObject, ClockObject

_clock = partial(described, __file__, tag=Tag.SANDBOX)

advance = _clock(
    "advance_test_clock", scope=Scope.PAYMENTS_WRITE, body=AdvanceRequest, response=AdvancedClockObject
)
retrieve = _clock("get_test_clock", scope=Scope.PAYMENTS_READ, response=ClockObject)
reset = _clock("reset_test_clock", scope=Scope.PAYMENTS_WRITE)
