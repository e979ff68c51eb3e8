"""Posts to receivers on loopback."""

from ipaddress import ip_network
from typing import Any

from tests.webhooks.corpus import resolving
from tests.webhooks.receivers import Receiver, Script, listening
from webhooks import client
from webhooks.client import Answer, Timeouts
from webhooks.targets import Policy

LOOPBACK = Policy(allowed_networks=(ip_network("127.0.0.0/8"),), allow_http=True)
# Who ends by itself may take as long as a busy machine needs.
PATIENT = Timeouts(connect=60, total=60)
SHORT = Timeouts(connect=0.25, total=0.3)
# For whoever never ends, but has to be heard before it is left.
ENDURING = Timeouts(connect=4, total=4)
# What a busy machine may add to a deadline: together less than any deadline that is not set here.
MARGIN_MS = 10_000
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


def post(url: str, **options: Any) -> Answer:
    """Post a small body, by default where loopback is allowed and every name leads there."""
    options = {"policy": LOOPBACK, "timeouts": PATIENT, "resolver": resolving("127.0.0.1")} | options
    return client.post(url, body=b'{"a":1}', headers={"webhook-id": "evt_1"}, **options)


def ask(script: Script, **options: Any) -> tuple[Answer, Receiver]:
    """One post to a receiver of its own, which runs the script."""
    with listening(script) as receiver:
        return post(receiver.url(), **options), receiver
