"""Verify webhooks, which are signed as Standard Webhooks describe, and read their events.

Source: https://github.com/standard-webhooks/standard-webhooks, the symmetric signature `v1`.
"""

import base64
import binascii
import hmac
import json
import time
from collections.abc import Mapping
from datetime import timedelta

from thaiqr.errors import SignatureError, UnexpectedResponseError
from thaiqr.models import Event, read_event

TOLERANCE = timedelta(minutes=5)
PREFIX = "whsec_"
HEADERS = ("webhook-id", "webhook-timestamp", "webhook-signature")
LATEST = 10**11
"""Seconds since the epoch. A later timestamp is malformed."""


def unwrap(
    body: bytes | str, headers: Mapping[str, str], secret: str, tolerance: timedelta = TOLERANCE
) -> Event:
    """Verify a message and read its event. Raises SignatureError if it is not genuine, or too old.

    body: exactly the bytes that arrived, before anything parses them. headers: those of the request, in any
    case. secret: that of the webhook. tolerance: how far the clocks may differ, which limits replays.
    An event may arrive twice. Keep its `event_id` and ignore what you know. Also raises ValueError for a
    malformed secret, and UnexpectedResponseError if a genuine message is no event.
    """
    raw = body.encode() if isinstance(body, str) else body
    message_id, sent_at, given = _headers(headers)
    _check_time(sent_at, tolerance)
    expected = sign(raw, message_id=message_id, timestamp=int(sent_at), secret=secret).encode()
    if not any(hmac.compare_digest(expected, signature.encode()) for signature in given.split()):
        raise SignatureError("no signature of the message fits the secret")
    try:
        return read_event(json.loads(raw))
    except ValueError:
        raise UnexpectedResponseError("The message is genuine, but no JSON.") from None


def sign(body: bytes, *, message_id: str, timestamp: int, secret: str) -> str:
    """The signature of a message: `v1,` and the HMAC-SHA256 in base64. Raises ValueError for a bad secret."""
    signed = f"{message_id}.{timestamp}.".encode() + body
    return "v1," + base64.b64encode(hmac.digest(_key(secret), signed, "sha256")).decode()


def _key(secret: str) -> bytes:
    """After `whsec_` comes the key in base64. Any other text is the key itself."""
    if not secret.startswith(PREFIX):
        key = secret.encode()
    else:
        try:
            key = base64.b64decode(secret.removeprefix(PREFIX), validate=True)
        except binascii.Error:
            raise ValueError("the webhook secret is no base64 after whsec_") from None
    if not key:
        raise ValueError("the webhook secret is empty: anybody could sign")
    return key


def _headers(headers: Mapping[str, str]) -> tuple[str, str, str]:
    found = {name.lower(): value for name, value in headers.items()}
    wrong = [name for name in HEADERS if not found.get(name) or not found[name].isascii()]
    if wrong:
        raise SignatureError(f"the header {wrong[0]} is missing or malformed")
    message_id, sent_at, given = (found[name] for name in HEADERS)
    return message_id, sent_at, given


def _check_time(sent_at: str, tolerance: timedelta) -> None:
    if not (sent_at.isascii() and sent_at.isdecimal() and len(sent_at) <= len(str(LATEST))):
        raise SignatureError("the header webhook-timestamp is malformed")
    if abs(time.time() - int(sent_at)) > tolerance.total_seconds():
        raise SignatureError("the message is too old, or a clock is wrong")
