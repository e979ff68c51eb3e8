"""The test clock in the OpenAPI document."""

from functools import partial

from core.errors import PathNotFound
from core.openapi import Answer, Body, Operation, Tag
from core.scopes import Scope
from sandbox.errors import TestModeOnly
from testclock.errors import ClockLimitReached, ClockNotAdvanceable
from testclock.serializers import AdvanceRequest
from testclock.shapes import AdvancedClockObject, ClockObject

_write = partial(Operation, tag=Tag.SANDBOX, scope=Scope.PAYMENTS_WRITE)
CLOCK = {"advanced_seconds": 960, "advanced_at": "2026-11-21T03:04:05.123Z"}
MOVED = {
    "qr_codes": 1,
    "expired": 1,
    "card_payments": 0,
    "inquiries": 1,
    "transfers": 0,
    "deliveries": 0,
    "bank_reports": 0,
}

advance = _write(
    name="advance_test_clock",
    summary="Advance the time of a test merchant",
    description="For test keys: what is due within this time happens now. Codes expire, events are sent "
    "again, the bank is asked, refunds and withdrawals go on, and the sandbox bank reports what it planned. "
    "Later times come nearer by as much. Only the next step of each is brought forward: advance again for "
    "the one after. All timestamps stay in real time; `created_at` and keys do not move. At most 90 days in "
    "all, and 5,000 rows at once.",
    body=Body(AdvanceRequest, {"advance_minutes": 16}),
    response=Answer(AdvancedClockObject, CLOCK | {"moved": MOVED}),
    errors=(PathNotFound, TestModeOnly, ClockLimitReached, ClockNotAdvanceable),
)
retrieve = Operation(
    name="get_test_clock",
    tag=Tag.SANDBOX,
    scope=Scope.PAYMENTS_READ,
    summary="Read the test clock",
    description="How far the time of this test merchant was advanced.",
    response=Answer(ClockObject, CLOCK),
    errors=(PathNotFound, TestModeOnly),
)
reset = _write(
    name="reset_test_clock",
    summary="Reset the test clock",
    description="The count starts at 0 again. What has happened stays.",
    errors=(PathNotFound, TestModeOnly),
)
