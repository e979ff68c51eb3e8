"""Circuit breaker of an endpoint: pause after failures, disable after 5 days. Pauses use no attempts."""

from datetime import datetime, timedelta

from django.conf import settings

from webhooks.models import EndpointActionType, EndpointHealth

MAX_CONSECUTIVE_FAILURES = 10  # an endpoint is paused after so many failures in a row
# It is also paused if this share of at least 10 attempts within one window failed.
WINDOW = timedelta(minutes=5)
MIN_WINDOW_ATTEMPTS = 10
MAX_FAILURE_RATE = 0.7
# Each pause is twice as long as the last one.
FIRST_PAUSE_SECONDS, MAX_PAUSE_SECONDS = 30.0, 15 * 60.0
# An endpoint without a success for this time, in at least MAX_CONSECUTIVE_FAILURES attempts, is disabled.
DISABLE_AFTER = timedelta(days=5)
LATENCY_WEIGHT = 0.25  # the weight of the newest attempt in the moving average


def record_attempt(
    health: EndpointHealth, *, error: str, duration_ms: int, started_at: datetime, now: datetime
) -> EndpointActionType | None:
    """Update `health` with an attempt from `started_at` to `now`.

    An attempt that started before a pause does not change the pause. Return PAUSED or RESUMED if the attempt
    started or ended a pause.
    """
    was_paused = health.paused_at is not None
    if health.window_started_at is None or now - health.window_started_at >= WINDOW:
        health.window_started_at, health.window_attempts, health.window_failures = now, 0, 0
    health.window_attempts += 1
    health.window_failures += error != ""
    known = duration_ms if health.latency_ms is None else health.latency_ms
    health.latency_ms = round(known + LATENCY_WEIGHT * (duration_ms - known))
    if error != "":
        _record_failure(health, error, started_at, now)
    else:
        health.consecutive_failures, health.failing_since, health.last_error = 0, None, ""
        if health.paused_at is not None and started_at >= health.paused_at:
            health.paused_at = health.paused_until = health.window_started_at = None
            health.pause_seconds = 0
    is_paused = health.paused_at is not None
    if is_paused == was_paused:
        return None
    return EndpointActionType.PAUSED if is_paused else EndpointActionType.RESUMED


def pause_reason(health: EndpointHealth) -> str:
    """Return for staff why the newest attempt started a pause."""
    if health.consecutive_failures >= MAX_CONSECUTIVE_FAILURES:
        return f"{health.consecutive_failures} failures in a row, last: {health.last_error}"
    share, minutes = f"{health.window_failures} of {health.window_attempts} attempts", WINDOW.seconds // 60
    return f"{share} within {minutes} minutes failed, last: {health.last_error}"


def should_disable(health: EndpointHealth, now: datetime) -> bool:
    """Whether the endpoint failed for 5 days and must be disabled."""
    since = health.failing_since
    return (
        since is not None
        and health.consecutive_failures >= MAX_CONSECUTIVE_FAILURES
        and now - since >= DISABLE_AFTER
    )


def _record_failure(health: EndpointHealth, error: str, started_at: datetime, now: datetime) -> None:
    health.consecutive_failures += 1
    health.failing_since = health.failing_since or started_at
    health.last_error = error
    is_mostly_failing = (
        health.window_attempts >= MIN_WINDOW_ATTEMPTS
        and health.window_failures >= MAX_FAILURE_RATE * health.window_attempts
    )
    if health.paused_until is not None:
        pauses, seconds = started_at >= health.paused_until, min(2 * health.pause_seconds, MAX_PAUSE_SECONDS)
    else:
        pauses = is_mostly_failing or health.consecutive_failures >= MAX_CONSECUTIVE_FAILURES
        seconds = FIRST_PAUSE_SECONDS
    if pauses:
        health.paused_at = health.paused_at or now
        health.pause_seconds = seconds
        health.paused_until = now + timedelta(seconds=seconds / settings.SPEEDUP)
