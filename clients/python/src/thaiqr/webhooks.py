"""Verify webhooks, which are signed as Standard Webhooks describe, and read their events.

Source: https://github.com/standard-webhooks/standard-webhooks, the symmetric signature `v1`.
"""

import base64
import hmac
import json
import time
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from thaiqr.errors import SignatureError, UnexpectedResponseError
from thaiqr.models import Event, read_event

TOLERANCE = timedelta(minutes=5)
PREFIX = "whsec_"
Text = str | bytes
Headers = (
    Mapping[str, str] | Mapping[bytes, bytes] | Mapping[str, Sequence[str]] | Iterable[tuple[Text, Text]]
)
"""As frameworks give them."""
HEADERS = ("webhook-id", "webhook-timestamp", "webhook-signature")
LATEST = 10**11
"""Seconds since the epoch. A later timestamp is malformed."""


def unwrap(body: bytes | str, headers: Headers, secret: str, tolerance: timedelta = TOLERANCE) -> Event:
    """Verify a message and read its event. Raises SignatureError if it is not genuine, or too old.

    body: exactly the bytes that arrived, before anything parses them. headers: those of the request, in any
    case, as a mapping or as pairs, also of bytes. secret: that of the webhook. tolerance: how far the clocks
    may differ, which limits replays. An event may arrive twice. Keep its `event_id` and ignore what you know.
    Also raises ValueError for a missing or malformed secret, TypeError for a body or headers that are not
    those of the request, and UnexpectedResponseError if a genuine message is no event.
    """
    _key(secret)  # first: a receiver without a secret refuses genuine messages, too
    raw = _bytes(body)
    message_id, sent_at, given = _signed_headers(headers)
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


def signed_headers(
    body: bytes, *, message_id: str, secret: str, timestamp: int | None = None
) -> dict[str, str]:
    """The headers with which the service sends a message. timestamp: now, by default. Raises ValueError."""
    at = int(time.time()) if timestamp is None else timestamp
    signature = sign(body, message_id=message_id, timestamp=at, secret=secret)
    signed = dict(zip(HEADERS, (message_id, str(at), signature), strict=True))
    return {"Content-Type": "application/json", **signed}


def signed_message(
    event: str, data: Mapping[str, Any], secret: str, *, event_id: str = "evt_test"
) -> tuple[bytes, dict[str, str]]:
    """Body and headers of a genuine message, to test your receiver: post them, or give them to `unwrap`.

    An `event_id` that was sent before is a repeat. Raises ValueError for a bad secret.
    """
    at = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    message = {"event": event, "event_id": event_id, "data": dict(data), "timestamp": at}
    body = json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode()
    return body, signed_headers(body, message_id=event_id, secret=secret)


def _bytes(body: object) -> bytes:
    if isinstance(body, bytes | bytearray | memoryview):
        return bytes(body)
    if not isinstance(body, str):
        raise TypeError(
            f"the body must be the bytes or the text that arrived, before anything parses them, "
            f"not {type(body).__name__}"
        )
    try:
        return body.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise SignatureError("the body is no text that a service sent") from None


def _key(secret: object) -> bytes:
    """After `whsec_` comes the key in base64. Any other text is the key itself."""
    if secret is None:
        raise ValueError("the webhook secret is missing: it is text that begins with whsec_")
    if not isinstance(secret, str):
        raise ValueError(
            f"the webhook secret must be text that begins with whsec_, not {type(secret).__name__}"
        )
    if not secret.startswith(PREFIX):
        key = secret.encode()
    else:
        try:
            key = base64.b64decode(secret.removeprefix(PREFIX), validate=True)
        except ValueError:
            raise ValueError("the webhook secret is no base64 after whsec_") from None
    if not key:
        raise ValueError("the webhook secret is empty: anybody could sign")
    return key


def _signed_headers(headers: Headers) -> tuple[str, str, str]:
    found = {_text(name).lower(): _text(value) for name, value in _pairs(headers)}
    wrong = [name for name in HEADERS if not found.get(name) or not found[name].isascii()]
    if wrong:
        raise SignatureError(f"the header {wrong[0]} is missing or malformed")
    message_id, sent_at, given = (found[name] for name in HEADERS)
    return message_id, sent_at, given


def _pairs(headers: Any) -> list[tuple[Any, Any]]:
    """Names and values of a mapping, or of pairs as ASGI has them. Raises TypeError."""
    try:
        return [(name, value) for name, value in (headers.items() if hasattr(headers, "items") else headers)]
    except (TypeError, ValueError):
        raise TypeError("the headers must be those of the request: a mapping, or pairs") from None


def _text(value: Any) -> str:
    """A name or value. Some frameworks give bytes, or a list with each header of the name."""
    if isinstance(value, list | tuple) and len(value) == 1:
        (value,) = value
    if isinstance(value, bytes):
        return value.decode("latin-1")
    return value if isinstance(value, str) else ""


def _check_time(sent_at: str, tolerance: timedelta) -> None:
    if not (sent_at.isascii() and sent_at.isdecimal() and len(sent_at) <= len(str(LATEST))):
        raise SignatureError("the header webhook-timestamp is malformed")
    if abs(time.time() - int(sent_at)) > tolerance.total_seconds():
        raise SignatureError("the message is too old, or a clock is wrong")
