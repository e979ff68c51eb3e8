"""How often a key may ask: GCRA, counted by one atomic script in Redis. Without Redis requests pass."""

import hashlib
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from redis.exceptions import NoScriptError
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from core import redis
from merchants.errors import RateLimitExceeded

# Generic cell rate algorithm: one number per key, the theoretical arrival time of the next request.
# Redis's own clock, so that all web processes agree. Answers allowed, remaining and milliseconds to wait.
SCRIPT = """
local interval = 1000000 / tonumber(ARGV[1])
local burst = tonumber(ARGV[2])
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
local arrival = math.max(tonumber(redis.call('GET', KEYS[1]) or now), now)
local room = math.floor((now + burst * interval - arrival) / interval + 0.000001)
if room < 1 then
  local wait = arrival + interval - burst * interval - now
  return {0, 0, math.ceil(wait / 1000), math.ceil((arrival - now) / 1000)}
end
arrival = arrival + interval
redis.call('SET', KEYS[1], string.format('%.0f', arrival), 'PX', math.ceil((arrival - now) / 1000) + 1000)
return {1, room - 1, 0, math.ceil((arrival - now) / 1000)}
"""
DIGEST = hashlib.sha1(SCRIPT.encode()).hexdigest()  # noqa: S324 (Redis names scripts so)


@dataclass(frozen=True, slots=True)
class Room:
    """What is left for a key: requests at once, and milliseconds until one more fits and until all fit."""

    allowed: bool
    remaining: int
    wait_ms: int
    reset_ms: int

    def headers(self) -> dict[str, str]:
        return {
            "RateLimit-Limit": str(settings.RATE_LIMIT_BURST),
            "RateLimit-Remaining": str(self.remaining),
            "RateLimit-Reset": str(_seconds(self.reset_ms)),
        }


def take(key_id: str) -> Room | None:
    """Count one request of the key; None when nothing limits it (off, or Redis is away)."""
    if settings.RATE_LIMIT == 0:
        return None
    found = redis.attempt(lambda client: _count(client, key_id))
    return None if found is None else Room(bool(found[0]), *found[1:])


class KeyRate(BaseThrottle):
    """DRF's hook; the headers are added by `merchants.api`."""

    def allow_request(self, request: Request, view: Any) -> bool:
        room = take(request.auth.id)  # type: ignore[union-attr]
        request._request.rate_room = room  # type: ignore[attr-defined]
        if room is not None and not room.allowed:
            wait = _seconds(room.wait_ms)
            raise RateLimitExceeded(RateLimitExceeded.message.format(retry_after=wait), retry_after=wait)
        return True


def _count(client: Any, key_id: str) -> Any:
    arguments = (1, f"rate:{key_id}", settings.RATE_LIMIT, settings.RATE_LIMIT_BURST)
    try:
        return client.evalsha(DIGEST, *arguments)
    except NoScriptError:
        return client.eval(SCRIPT, *arguments)


def _seconds(milliseconds: int) -> int:
    return max(1, -(-milliseconds // 1000))
