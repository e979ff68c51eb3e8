from typing import Annotated, TypedDict

from core.clock import iso_or_none
from core.http.objects import Instant, between
from testclock.models import MAX_SECONDS, MerchantClock


class ClockObject(TypedDict):
    advanced_seconds: Annotated[int, between(0, MAX_SECONDS), "All advances since the last reset."]
    advanced_at: Annotated[Instant | None, "The last advance, in real time."]


class MovedRows(TypedDict):
    """How many rows were brought forward."""

    qr_codes: Annotated[int, between(0), "Open codes, also those that expired by it."]
    expired: Annotated[int, between(0), "Codes that expired by it."]
    card_payments: Annotated[int, between(0)]
    payment_links: Annotated[int, between(0), "Links whose expiry came nearer."]
    inquiries: Annotated[int, between(0), "Questions to the bank about codes."]
    transfers: Annotated[int, between(0), "Orders of refunds and withdrawals."]
    deliveries: Annotated[int, between(0), "Events that wait for another attempt."]
    bank_reports: Annotated[int, between(0), "Callbacks of the sandbox bank."]


class AdvancedClockObject(ClockObject):
    moved: MovedRows


def clock_object(row: MerchantClock) -> ClockObject:
    return {"advanced_seconds": row.advanced_seconds, "advanced_at": iso_or_none(row.advanced_at)}
