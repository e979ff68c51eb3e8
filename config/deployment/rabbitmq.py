"""RabbitMQ, if it is the broker: whether it answers, its version and TLS."""

from typing import Any

from django.conf import settings
from kombu.exceptions import OperationalError

from config.checks import broker_servers, is_safe
from config.deployment.findings import Finding, ok, problem, warning

SECONDS = 3.0
OLDEST = (3, 10)  # quorum queues that drop expired messages


def findings() -> list[Finding]:
    servers = broker_servers(settings.BROKER_URL)
    if servers is None:
        return []  # Redis is the broker, or the settings say what is wrong
    try:
        found = [version(_version())]
    except (OperationalError, OSError) as error:
        reason = str(error) or type(error).__name__
        found = [problem("RabbitMQ", reason, "Check BROKER_URL and that the server runs.")]
    if servers.scheme == "amqps":
        return [*found, ok("RabbitMQ TLS", "on")]
    if is_safe(servers):
        return [*found, ok("RabbitMQ TLS", "off, on this machine")]
    return [*found, warning("RabbitMQ TLS", "off", "Use amqps:// in BROKER_URL.")]


def version(number: str) -> Finding:
    if tuple(map(int, number.split(".")[:2])) < OLDEST:
        return problem("RabbitMQ", number, f"Install RabbitMQ {'.'.join(map(str, OLDEST))} or newer.")
    return ok("RabbitMQ", number)


def _version() -> str:
    """Raises OperationalError, OSError."""
    with settings.BROKER.connection(SECONDS) as connection:
        connection.ensure_connection(max_retries=1, interval_start=0, interval_step=0)
        opened: Any = connection.connection
        return str(opened.server_properties["version"])
