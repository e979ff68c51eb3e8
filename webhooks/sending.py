"""Send a message to an endpoint, signed with its secrets. Never call this inside a transaction."""

from datetime import datetime

from django.conf import settings

from merchants.models import Mode
from webhooks import signing
from webhooks.http import client
from webhooks.http.url_check import UrlPolicy
from webhooks.models import Endpoint

USER_AGENT = "ThaiQR-Webhooks/1"


async def send(
    endpoint: Endpoint,
    *,
    message_id: str,
    body: bytes,
    merchant_mode: str,
    now: datetime,
    timeouts: client.Timeouts,
    traceparent: str | None = None,
) -> client.PostResult:
    """Post `body` with a signature of this attempt. Never raises for URL or network.

    traceparent: a header by which the merchant's own traces go on (`core.observing.telemetry`).

    Runs in the loop of `webhooks.http.event_loop`.
    """
    signed = signing.headers(
        secrets=endpoint.signing_secrets(now),
        message_id=message_id,
        timestamp=int(now.timestamp()),
        body=body,
    )
    trace = {} if traceparent is None else {"traceparent": traceparent}
    return await client.post(
        endpoint.url,
        body=body,
        headers={"content-type": "application/json", "user-agent": USER_AGENT, **trace, **signed},
        policy=url_policy(merchant_mode),
        merchant_id=endpoint.merchant_id or "",
        timeouts=timeouts,
    )


def url_policy(mode: str) -> UrlPolicy:
    """The URL rules of a merchant mode. Only test merchants may use internal networks and http."""
    ports = frozenset(settings.WEBHOOK_PORTS)
    if mode == Mode.LIVE:
        return UrlPolicy(ports=ports)
    return UrlPolicy(
        ports=ports,
        allowed_networks=tuple(settings.WEBHOOK_ALLOWED_NETWORKS),
        allow_http=settings.WEBHOOK_ALLOW_HTTP,
    )
