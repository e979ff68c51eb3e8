"""When an endpoint is left alone for a while, and when for good. Pauses use up no attempts."""

from datetime import datetime, timedelta

from webhooks.models import Act, Health

# An endpoint is paused after so many failures in a row,
FAILURES_IN_A_ROW = 10
# or after this share of at least so many attempts within one window.
WINDOW = timedelta(minutes=5)
ATTEMPTS_IN_WINDOW = 10
FAILED_SHARE = 0.7
# Seconds; each pause is twice the one before.
FIRST_PAUSE, LONGEST_PAUSE = 30.0, 15 * 60.0
# An endpoint that never once succeeded for so long, in at least FAILURES_IN_A_ROW attempts, is given up.
GIVEN_UP_AFTER = timedelta(days=5)
# The share of the newest attempt in the average of latencies.
NEWEST_SHARE = 0.25


def note(
    health: Health, *, error: str, duration_ms: int, began: datetime, now: datetime, pace: float
) -> Act | None:
    """Change `health` by an attempt that began at `began` and ended at `now`; `pace` divides pauses.

    What began before a pause says nothing of the time after it. Returns PAUSED or RESUMED where a pause,
    with those that follow it, began or ended.
    """
    was_paused = health.paused_at is not None
    _count(health, duration_ms, now, is_failure=error != "")
    if error == "":
        _succeeded(health, began)
    else:
        _failed(health, error, began, now, pace)
    is_paused = health.paused_at is not None
    if is_paused == was_paused:
        return None
    return Act.PAUSED if is_paused else Act.RESUMED


def why(health: Health) -> str:
    """What tripped the pause that begins with the newest attempt, for a person."""
    if health.failures >= FAILURES_IN_A_ROW:
        return f"{health.failures} failures in a row, last: {health.last_error}"
    share, minutes = f"{health.window_failures} of {health.window_attempts} attempts", WINDOW.seconds // 60
    return f"{share} within {minutes} minutes failed, last: {health.last_error}"


def is_forgotten(health: Health, began: datetime) -> bool:
    """Whether an attempt began before the endpoint was moved or enabled, and says nothing of what is now."""
    return health.forgotten_at is not None and began < health.forgotten_at


def is_hopeless(health: Health, now: datetime) -> bool:
    """Whether it failed for so long that it is to be disabled."""
    since = health.failing_since
    return since is not None and health.failures >= FAILURES_IN_A_ROW and now - since >= GIVEN_UP_AFTER


def _count(health: Health, duration_ms: int, now: datetime, *, is_failure: bool) -> None:
    if health.window_started_at is None or now - health.window_started_at >= WINDOW:
        health.window_started_at, health.window_attempts, health.window_failures = now, 0, 0
    health.window_attempts += 1
    health.window_failures += is_failure
    known = duration_ms if health.latency_ms is None else health.latency_ms
    health.latency_ms = round(known + NEWEST_SHARE * (duration_ms - known))


def _succeeded(health: Health, began: datetime) -> None:
    health.failures, health.failing_since, health.last_error = 0, None, ""
    if health.paused_at is not None and began >= health.paused_at:
        health.paused_at = health.paused_until = None
        health.pause_seconds = 0
        health.window_started_at = None


def _failed(health: Health, error: str, began: datetime, now: datetime, pace: float) -> None:
    health.failures += 1
    health.failing_since = health.failing_since or began
    health.last_error = error
    if health.paused_until is None:
        if _is_tripped(health):
            _pause(health, FIRST_PAUSE, now, pace)
    elif began >= health.paused_until:
        _pause(health, min(2 * health.pause_seconds, LONGEST_PAUSE), now, pace)


def _is_tripped(health: Health) -> bool:
    is_mostly_failing = (
        health.window_attempts >= ATTEMPTS_IN_WINDOW
        and health.window_failures >= FAILED_SHARE * health.window_attempts
    )
    return is_mostly_failing or health.failures >= FAILURES_IN_A_ROW


def _pause(health: Health, seconds: float, now: datetime, pace: float) -> None:
    health.paused_at = health.paused_at or now
    health.pause_seconds = seconds
    health.paused_until = now + timedelta(seconds=seconds / pace)
