from core.errors import StateError, invalid_field

InvalidAdvanceSeconds = invalid_field(
    "advance_seconds", "Give advance_seconds (1 to 7776000) or advance_minutes (1 to 129600)."
)
InvalidAdvanceMinutes = invalid_field(
    "advance_minutes", "Give advance_seconds (1 to 7776000) or advance_minutes (1 to 129600)."
)


class ClockLimitReached(StateError):
    code = "clock_limit_reached"
    message = "A clock goes 90 days forward: {seconds_left} s are left. DELETE starts it anew."


class ClockNotAdvanceable(StateError):
    code = "clock_not_advanceable"
    message = (
        "More than {limit} codes, deliveries, transfers or reports of the bank wait. Expire codes first."
    )
