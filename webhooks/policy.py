"""Where a merchant's webhooks may go, read from the settings."""

from django.conf import settings

from merchants.models import Mode
from webhooks.targets import Policy


def policy_for(mode: str) -> Policy:
    """The rules for a merchant of this mode. Inner networks and http are for test merchants only."""
    ports = frozenset(settings.WEBHOOK_PORTS)
    if mode == Mode.LIVE:
        return Policy(ports=ports)
    return Policy(
        ports=ports,
        allowed_networks=tuple(settings.WEBHOOK_ALLOWED_NETWORKS),
        allow_http=settings.WEBHOOK_ALLOW_HTTP,
    )
