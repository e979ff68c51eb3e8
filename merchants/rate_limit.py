"""How often a key may ask. Without Redis requests pass."""

from typing import Any

from django.conf import settings
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from core import rate_limits
from core.rate_limits import RateLimit, RateLimitResult
from merchants.errors import RateLimitExceeded


def take(key_id: str) -> RateLimitResult | None:
    """Count one request of the key; None when nothing limits it (off, or Redis is away)."""
    if settings.RATE_LIMIT == 0:
        return None
    return rate_limits.consume(key_id, RateLimit(settings.RATE_LIMIT, settings.RATE_LIMIT_BURST))


def headers(room: RateLimitResult) -> dict[str, str]:
    """What an answer tells of the room of its key."""
    return {
        "RateLimit-Limit": str(settings.RATE_LIMIT_BURST),
        "RateLimit-Remaining": str(room.remaining),
        "RateLimit-Reset": str(room.reset_after),
    }


class KeyRateThrottle(BaseThrottle):
    """DRF's hook; the headers are added by `merchants.api`."""

    def allow_request(self, request: Request, view: Any) -> bool:
        room = take(request.auth.id)  # type: ignore[union-attr]
        request._request.rate_room = room  # type: ignore[attr-defined]
        if room is not None and not room.allowed:
            wait = room.retry_after
            raise RateLimitExceeded(RateLimitExceeded.message.format(retry_after=wait), retry_after=wait)
        return True
