from core.errors import Invalid, StateError, invalid_field
from merchants.errors import RateLimitExceeded

InvalidAdvanceMinutes = invalid_field("advance_minutes", "an integer from 1 to 129600 minutes")


class InvalidAdvanceSeconds(Invalid):
    code = "invalid_advance_seconds"
    message = "advance_seconds must be an integer from 1 to 7776000 seconds. Received: {received}."


class NotOneAdvance(InvalidAdvanceSeconds):
    message = "Give either advance_seconds or advance_minutes."


class AdvancedTooOften(RateLimitExceeded):
    message = "The clock was advanced too often. Try again in {retry_after} s."


class ClockLimitReached(StateError):
    code = "clock_limit_reached"
    message = "A clock goes 90 days forward: {seconds_left} s are left. DELETE starts it anew."


class ClockNotAdvanceable(StateError):
    code = "clock_not_advanceable"
    message = (
        "More than {limit} codes, deliveries, transfers or reports of the bank wait. Expire codes first."
    )
