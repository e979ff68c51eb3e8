from core.errors import Invalid, StateError, invalid_field
from merchants.errors import RateLimitExceeded

InvalidAdvanceMinutes = invalid_field("advance_minutes", "an integer from 1 to 129600 minutes")
InvalidAdvanceSeconds = Invalid.of(
    "invalid_advance_seconds",
    "advance_seconds must be an integer from 1 to 7776000 seconds. Received: {received}.",
)
NotOneAdvance = InvalidAdvanceSeconds.worded("Give either advance_seconds or advance_minutes.")
AdvancedTooOften = RateLimitExceeded.worded("The clock was advanced too often. Try again in {retry_after} s.")
ClockLimitReached = StateError.of(
    "clock_limit_reached", "A clock goes 90 days forward: {seconds_left} s are left. DELETE starts it anew."
)
ClockNotAdvanceable = StateError.of(
    "clock_not_advanceable",
    "More than {limit} codes, deliveries, transfers or reports of the bank wait. Expire codes first.",
)
