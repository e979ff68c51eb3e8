"""Posts to receivers on loopback."""

from ipaddress import ip_network
from typing import Any

from tests.webhooks.corpus import resolving
from tests.webhooks.receivers import Receiver, Script, listening
from webhooks import client
from webhooks.client import Answer, Timeouts
from webhooks.targets import Policy

LOOPBACK = Policy(allowed_networks=(ip_network("127.0.0.0/8"),), allow_http=True)
PATIENT = Timeouts(connect=3, total=5)
SHORT = Timeouts(connect=0.25, total=0.3)
# What a busy machine may add to a deadline.
MARGIN_MS = 300
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


def post(url: str, **options: Any) -> Answer:
    """Post a small body, by default where loopback is allowed and every name leads there."""
    options = {"policy": LOOPBACK, "timeouts": PATIENT, "resolver": resolving("127.0.0.1")} | options
    return client.post(url, body=b'{"a":1}', headers={"webhook-id": "evt_1"}, **options)


def ask(script: Script, **options: Any) -> tuple[Answer, Receiver]:
    """One post to a receiver of its own, which runs the script."""
    with listening(script) as receiver:
        return post(receiver.url(), **options), receiver
