"""When a delivery is tried again: ten attempts within 75 hours."""

import random
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from django.conf import settings

MINUTE, HOUR = 60, 3600
# Seconds from one attempt to the next, as in the example of the Standard Webhooks specification.
RETRY_DELAYS = (0, 5, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 5 * HOUR, 10 * HOUR, 14 * HOUR, 20 * HOUR, 24 * HOUR)
MAX_ATTEMPTS = len(RETRY_DELAYS)
JITTER = 0.2  # spreads deliveries that failed together: plus or minus 20 %


def retry_delay(attempt: int, *, retry_after: str | None, now: datetime) -> float | None:
    """Return the seconds to wait after failed attempt number `attempt` (from 1), or None after the last one.

    The header `Retry-After` can double the wait at most.
    """
    if attempt >= MAX_ATTEMPTS:
        return None
    jitter = random.uniform(1 - JITTER, 1 + JITTER)  # noqa: S311 (not for security)
    base: float = RETRY_DELAYS[attempt] * jitter / settings.SPEEDUP
    return min(max(base, parse_retry_after(retry_after, now)), 2 * base)


def parse_retry_after(retry_after: str | None, now: datetime) -> float:
    """Return the seconds of a `Retry-After` header (RFC 9110, section 10.2.3), or 0 for an invalid one."""
    text = (retry_after or "").strip()
    if text.isascii() and text.isdigit():
        return min(float(text), float(RETRY_DELAYS[-1] * 2))
    try:
        at = parsedate_to_datetime(text)
    except (ValueError, TypeError, OverflowError):
        return 0.0
    at = at.replace(tzinfo=UTC) if at.tzinfo is None else at
    return max(0.0, (at - now).total_seconds())
