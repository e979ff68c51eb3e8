"""`thaiqr-server check`: what is wrong with a deployment, in one screen, in the order of its parts.

Each part returns findings. It raises nothing for what a deployment may have wrong.
"""

from django.conf import settings
from django.core.checks import run_checks

from config import checks, connection_count
from config.deployment import counterparties, machine, postgresql, public_url, redis_server
from config.deployment.findings import Finding, ok, problem, warning
from config.workers import WORKERS
from core import clock


def run(web_servers: int, workers_of_each_kind: int) -> list[Finding]:
    """Look at everything. The counts are those of the deployment, and matter for its connections."""
    of_one = connection_count.of_web(settings.WEB_WORKERS, settings.WEB_THREADS, settings.CARD_CONCURRENCY)
    web = web_servers * of_one
    workers = list(WORKERS.values()) * workers_of_each_kind
    return [
        *configuration(),
        *machine.findings(),
        *postgresql.findings(connection_count.of_deployment(web, workers)),
        *redis_server.findings(),
        *public_url.findings(clock.now()),
        *counterparties.findings(),
    ]


def configuration() -> list[Finding]:
    """The settings of this process, without any connection."""
    found = [
        problem("settings", error.msg, str(error.hint)) for error in run_checks(tags=[checks.SETTINGS_TAG])
    ] or [ok("settings", "complete and valid")]
    if not settings.MONITORING_TOKEN:
        advice = "Set MONITORING_TOKEN, or block /metrics and /readyz in the proxy."
        found.append(warning("MONITORING_TOKEN", "is empty: everybody may read /metrics", advice))
    if settings.ALLOW_PLAINTEXT_BACKENDS:
        advice = "Only for a network that encrypts by itself. Otherwise use TLS and remove it."
        found.append(warning("ALLOW_PLAINTEXT_BACKENDS", "is on: no TLS is asked for", advice))
    return found
