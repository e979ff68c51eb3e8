"""Send a message to an endpoint, signed with its secrets. Never call it inside a transaction."""

from datetime import datetime

from webhooks import client, signing
from webhooks.models import Endpoint
from webhooks.policy import policy_for

USER_AGENT = "ThaiQR-Webhooks/1"


def post(
    endpoint: Endpoint,
    *,
    message_id: str,
    body: bytes,
    merchant_mode: str,
    now: datetime,
    timeouts: client.Timeouts,
) -> client.Answer:
    """Post `body` as it is, with a signature of this attempt. Faults of URL and network never raise."""
    signed = signing.headers(
        secrets=endpoint.secrets_at(now), message_id=message_id, timestamp=int(now.timestamp()), body=body
    )
    return client.post(
        endpoint.url,
        body=body,
        headers={"content-type": "application/json", "user-agent": USER_AGENT, **signed},
        policy=policy_for(merchant_mode),
        merchant_id=endpoint.merchant_id,
        timeouts=timeouts,
    )
