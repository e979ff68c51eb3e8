from typing import Any

from core.clock import iso_or_none
from testclock.models import MerchantClock


def clock_object(row: MerchantClock) -> dict[str, Any]:
    return {"advanced_seconds": row.advanced_seconds, "advanced_at": iso_or_none(row.advanced_at)}
