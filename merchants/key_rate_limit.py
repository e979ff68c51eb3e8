"""The rate limit of an API key. Without Redis nothing is limited.

A web process takes several requests from Redis at once and gives them out itself, which saves most round
trips. All processes of a machine together hold at most 5 % of a burst, so a key may be refused that much
early.
"""

import threading
import time
from dataclasses import dataclass

from django.conf import settings
from rest_framework.request import Request

from core.http import rate_limits
from core.http.rate_limits import RateLimit, RateLimitResult
from merchants.errors import RateLimitExceeded

LEASE_SECONDS = 1.0  # requests that were taken and not used are lost after this time
MAX_LEASE = 50
MAX_KEYS = 10_000  # that one process remembers


@dataclass
class _Lease:
    """Requests of a key that this process may still give out."""

    result: RateLimitResult
    unused: int
    ends_at: float


class KeyRateLimiter:
    """The requests that this process has taken from Redis."""

    def __init__(self) -> None:
        self._leases: dict[str, _Lease] = {}
        self._refilling: set[str] = set()
        self._lock = threading.Lock()

    def take(self, key_id: str, rate: RateLimit, lease_size: int) -> RateLimitResult | None:
        """Count one request of the key. None without Redis."""
        with self._lock:
            lease = self._leases.get(key_id)
            if lease is not None and lease.unused > 0 and lease.ends_at >= time.monotonic():
                lease.unused -= 1
                return lease.result._replace(remaining=lease.result.remaining + lease.unused)
            is_refilling = lease_size > 1 and key_id not in self._refilling
            if is_refilling:
                self._refilling.add(key_id)
        # Requests at the same time take one each, so that a process holds one lease of a key.
        if not is_refilling:
            return rate_limits.consume(key_id, rate)
        try:
            result = rate_limits.consume(key_id, rate, lease_size)
        finally:
            with self._lock:
                self._refilling.discard(key_id)
        return self._keep_lease(key_id, result)

    def _keep_lease(self, key_id: str, result: RateLimitResult | None) -> RateLimitResult | None:
        if result is None or result.taken < 2:
            return result
        unused = result.taken - 1
        with self._lock:
            if len(self._leases) >= MAX_KEYS:
                self._leases.clear()
            self._leases[key_id] = _Lease(result, unused, time.monotonic() + LEASE_SECONDS)
        return result._replace(remaining=result.remaining + unused)


_limiter = KeyRateLimiter()


def take(key_id: str) -> RateLimitResult | None:
    """Count one request of the key. None if there is no limit, or no Redis."""
    if settings.RATE_LIMIT == 0:
        return None
    rate = RateLimit(settings.RATE_LIMIT, settings.RATE_LIMIT_BURST)
    # What is taken and not used is lost each second, so it must be little of the rate too.
    burst = min(rate.burst, int(2 * rate.per_second))
    return _limiter.take(key_id, rate, lease_size(burst, settings.WEB_WORKERS))


def lease_size(burst: int, processes: int) -> int:
    """How many requests to take at once, so that `processes` hold at most 5 % of a burst."""
    return min(MAX_LEASE, 1 + burst // (20 * max(1, processes)))


def headers(room: RateLimitResult) -> dict[str, str]:
    """The headers for the remaining requests of a key."""
    return {
        "RateLimit-Limit": str(settings.RATE_LIMIT_BURST),
        "RateLimit-Remaining": str(room.remaining),
        "RateLimit-Reset": str(room.reset_after),
    }


def check(request: Request) -> None:
    """Raises RateLimitExceeded above the limit. `merchants.api` adds the headers."""
    room = take(request.auth.id)  # type: ignore[union-attr]
    request._request.rate_room = room  # type: ignore[attr-defined]
    if room is not None and not room.allowed:
        raise RateLimitExceeded(retry_after=room.retry_after)
