"""Whether the clocks of this machine, PostgreSQL and Redis agree."""

from django.conf import settings

from config.deployment.findings import Finding, ok, problem, warning

# Codes then expire minutes too early or too late, and signed messages of banks are refused.
MOST_SECONDS = 60.0
ADVICE = "Let one time service (chrony, systemd-timesyncd) set the clocks of both machines."


def compare(subject: str, difference: float) -> Finding:
    """difference: the seconds by which that clock is ahead of this machine's."""
    found = f"{difference:+.3f} s to this machine"
    if abs(difference) > MOST_SECONDS:
        return problem(subject, found, ADVICE)
    if abs(difference) > settings.CLOCK_WARNING_SECONDS:
        return warning(subject, found, ADVICE)
    return ok(subject, found)
