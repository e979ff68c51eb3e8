"""The settings of this process, without any connection."""

from django.conf import settings
from django.core.checks import run_checks

from config import checks
from config.deployment.findings import Finding, ok, problem, warning


def findings() -> list[Finding]:
    found = [
        problem("settings", error.msg, str(error.hint)) for error in run_checks(tags=[checks.SETTINGS_TAG])
    ] or [ok("settings", "complete and valid")]
    if settings.DEBUG:
        found.append(problem("DEBUG", "is on: clients see source code and settings", "Remove DEBUG."))
    if not settings.MONITORING_TOKEN:
        advice = "Set MONITORING_TOKEN, or block /metrics and /readyz in the proxy."
        found.append(warning("MONITORING_TOKEN", "is empty: everybody may read /metrics", advice))
    if settings.ALLOW_PLAINTEXT_BACKENDS:
        advice = "Only for a network that encrypts by itself. Otherwise use TLS and remove it."
        found.append(warning("ALLOW_PLAINTEXT_BACKENDS", "is on: no TLS is asked for", advice))
    return found
