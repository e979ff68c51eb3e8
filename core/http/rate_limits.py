"""Rate limits: GCRA in one atomic script in Redis. Without Redis nothing is limited."""

import hashlib
from dataclasses import dataclass
from typing import Any, NamedTuple

from redis.exceptions import NoScriptError

from core.errors import ApiError
from core.work import redis

# Generic cell rate algorithm: one number per name, the theoretical arrival time of the next one.
# It uses the clock of Redis, so that all processes agree. It takes up to ARGV[3] requests.
# Returns the number taken, the number that remains and both waits in ms.
SCRIPT = """
local interval = 1000000 / tonumber(ARGV[1])
local burst = tonumber(ARGV[2])
local wanted = tonumber(ARGV[3])
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
local latest = now + burst * interval
local stored = tonumber(redis.call('GET', KEYS[1]) or now)
local arrival = math.min(math.max(stored, now), latest)
local room = math.floor((latest - arrival) / interval + 0.000001)
if room < 1 then
  -- The clock may have been set back, or another server may have taken over: from now on a whole burst away.
  if stored > latest then
    redis.call('SET', KEYS[1], string.format('%.0f', latest), 'PX', math.ceil((latest - now) / 1000) + 1000)
  end
  return {0, 0, math.ceil((arrival + interval - latest) / 1000), math.ceil((arrival - now) / 1000)}
end
local taken = math.min(wanted, room)
arrival = arrival + taken * interval
redis.call('SET', KEYS[1], string.format('%.0f', arrival), 'PX', math.ceil((arrival - now) / 1000) + 1000)
return {taken, room - taken, 0, math.ceil((arrival - now) / 1000)}
"""
DIGEST = hashlib.sha1(SCRIPT.encode()).hexdigest()  # noqa: S324 (Redis names scripts so)


@dataclass(frozen=True, slots=True)
class RateLimit:
    """`burst` at once, and `per_second` in the long run."""

    per_second: float
    burst: int


class RateLimitResult(NamedTuple):
    """Requests taken and those that remain, and milliseconds until one more and until all are allowed."""

    taken: int
    remaining: int
    wait_ms: int
    reset_ms: int

    @property
    def allowed(self) -> bool:
        return self.taken > 0

    @property
    def retry_after(self) -> int:
        """Whole seconds until one more is allowed, at least one."""
        return _seconds(self.wait_ms)

    @property
    def reset_after(self) -> int:
        """Whole seconds until all are allowed, at least one."""
        return _seconds(self.reset_ms)


def consume(name: str, rate: RateLimit, wanted: int = 1) -> RateLimitResult | None:
    """Count up to `wanted` events of this name. None if Redis does not answer."""
    found = redis.try_call(lambda _: _count(f"rate:{name}", rate, wanted))
    return None if found is None else RateLimitResult(*found)


def check(name: str, rate: RateLimit, refusal: type[ApiError]) -> None:
    """Count an event of this name. Raises `refusal` above the limit."""
    room = consume(name, rate)
    if room is not None and not room.allowed:
        raise refusal(retry_after=room.retry_after)


def _count(key: str, rate: RateLimit, wanted: int) -> Any:
    arguments = (1, key, rate.per_second, rate.burst, wanted)
    try:
        return redis.run("EVALSHA", DIGEST, *arguments)
    except NoScriptError:
        return redis.run("EVAL", SCRIPT, *arguments)


def _seconds(milliseconds: int) -> int:
    return max(1, -(-milliseconds // 1000))
