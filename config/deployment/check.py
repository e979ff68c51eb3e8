"""All parts of the check, in the order of the screen."""

from django.conf import settings

from config import connection_count
from config.deployment import (
    configuration,
    counterparties,
    machine,
    postgresql,
    public_url,
    redis_server,
)
from config.deployment.findings import Finding
from config.workers import WORKERS
from core import clock


def run(web_servers: int, workers_of_each_kind: int) -> list[Finding]:
    """Look at everything. The counts are those of the deployment, and matter for its connections."""
    web = web_servers * connection_count.of_web(
        settings.WEB_WORKERS, settings.WEB_THREADS, settings.CARD_CONCURRENCY
    )
    workers = list(WORKERS.values()) * workers_of_each_kind
    return [
        *configuration.findings(),
        *machine.findings(),
        *postgresql.findings(connection_count.of_deployment(web, workers)),
        *redis_server.findings(),
        *public_url.findings(clock.now()),
        *counterparties.findings(),
    ]
