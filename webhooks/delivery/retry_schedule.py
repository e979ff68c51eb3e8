"""When to try again: ten attempts over 75 hours."""

import random
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

MINUTE, HOUR = 60, 3600
# Seconds from the attempt before: the example in the Standard Webhooks specification.
RETRY_DELAYS = (0, 5, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 5 * HOUR, 10 * HOUR, 14 * HOUR, 20 * HOUR, 24 * HOUR)
MAX_ATTEMPTS = len(RETRY_DELAYS)
# Spreads what failed together; 0.2 is plus or minus 20 %.
JITTER = 0.2


def retry_delay(attempt: int, *, pace: float, retry_after: str | None, now: datetime) -> float | None:
    """Seconds to wait after attempt number `attempt` (from 1) failed, None when it was the last one.

    `pace` divides the waits. An endpoint that asks for more by `Retry-After` gets up to twice the wait.
    """
    if attempt >= MAX_ATTEMPTS:
        return None
    base = RETRY_DELAYS[attempt] / pace * random.uniform(1 - JITTER, 1 + JITTER)  # noqa: S311 (spreads load, hides nothing)
    asked = parse_retry_after(retry_after, now)
    return min(max(base, asked), 2 * base)


def parse_retry_after(retry_after: str | None, now: datetime) -> float:
    """What a `Retry-After` header means (RFC 9110, section 10.2.3); 0 where it makes no sense."""
    text = (retry_after or "").strip()
    if text.isascii() and text.isdigit():
        return min(float(text), float(RETRY_DELAYS[-1] * 2))
    try:
        at = parsedate_to_datetime(text)
    except (ValueError, TypeError, OverflowError):
        return 0.0
    at = at.replace(tzinfo=UTC) if at.tzinfo is None else at
    return max(0.0, (at - now).total_seconds())
