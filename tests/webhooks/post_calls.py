"""Posts to receivers on loopback."""

from ipaddress import ip_network
from typing import Any

from tests.webhook_receiver import Receiver, Script
from tests.webhooks.hostile_urls import resolving
from tests.webhooks.misbehaving_receivers import listening
from webhooks.http import client, event_loop
from webhooks.http.client import PostResult, Timeouts
from webhooks.http.url_check import UrlPolicy

LOOPBACK = UrlPolicy(allowed_networks=(ip_network("127.0.0.0/8"),), allow_http=True)
# For posts that must not time out, even on a busy machine.
LONG_TIMEOUTS = Timeouts(connect=60, total=60)
SHORT_TIMEOUTS = Timeouts(connect=2, total=2)
# For responses that never end, whose beginning must be received.
MEDIUM_TIMEOUTS = Timeouts(connect=4, total=4)
# How late a deadline may be on a busy machine. Less than all other deadlines.
MARGIN_MS = 10_000
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


def post(url: str, **options: Any) -> PostResult:
    """Post a small body. By default loopback is allowed and every name resolves to it."""
    options = {"policy": LOOPBACK, "timeouts": LONG_TIMEOUTS, "resolver": resolving("127.0.0.1")} | options
    return post_bytes(url, b'{"a":1}', headers={"webhook-id": "evt_1"}, **options)


def post_bytes(url: str, body: bytes, **options: Any) -> PostResult:
    """Post this body, and wait for the result."""
    return event_loop.run(client.post(url, body=body, **options))


def post_to(script: Script, **options: Any) -> tuple[PostResult, Receiver]:
    """Post to a new receiver that runs the script."""
    with listening(script) as receiver:
        return post(receiver.url(), **options), receiver
