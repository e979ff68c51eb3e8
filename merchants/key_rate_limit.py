"""The rate limit of an API key. Without Redis nothing is limited."""

from typing import Any

from django.conf import settings
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from core import rate_limits
from core.rate_limits import RateLimit, RateLimitResult
from merchants.errors import RateLimitExceeded


def take(key_id: str) -> RateLimitResult | None:
    """Count one request of the key. None if there is no limit, or no Redis."""
    if settings.RATE_LIMIT == 0:
        return None
    return rate_limits.consume(key_id, RateLimit(settings.RATE_LIMIT, settings.RATE_LIMIT_BURST))


def headers(room: RateLimitResult) -> dict[str, str]:
    """The headers for the remaining requests of a key."""
    return {
        "RateLimit-Limit": str(settings.RATE_LIMIT_BURST),
        "RateLimit-Remaining": str(room.remaining),
        "RateLimit-Reset": str(room.reset_after),
    }


class KeyRateThrottle(BaseThrottle):
    """Refuses requests above the limit. `merchants.api` adds the headers."""

    def allow_request(self, request: Request, view: Any) -> bool:
        room = take(request.auth.id)  # type: ignore[union-attr]
        request._request.rate_room = room  # type: ignore[attr-defined]
        if room is not None and not room.allowed:
            wait = room.retry_after
            raise RateLimitExceeded(RateLimitExceeded.message.format(retry_after=wait), retry_after=wait)
        return True
