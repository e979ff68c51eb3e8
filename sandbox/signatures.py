"""How the service proves that an order is its own: as the bank proves its notices, with what is asked for."""

import hmac
import re
from collections.abc import Mapping
from datetime import datetime, timedelta

from django.conf import settings

from sandbox.errors import InvalidOrderSignature

SIGNATURE = "Sandbox-Bank-Signature"
TOLERANCE = timedelta(minutes=5)
_SIGNATURE = re.compile("t=([0-9]{1,11}),v1=([0-9a-f]{64})")


def verify(headers: Mapping[str, str], *, method: str, path: str, body: bytes, now: datetime) -> None:
    """`t=<unix seconds>,v1=<hex HMAC-SHA256 of "<t>.<method> <path>.<body>">`.

    Raises InvalidOrderSignature.
    """
    match = _SIGNATURE.fullmatch(headers.get(SIGNATURE, ""))
    if match is None:
        raise InvalidOrderSignature()
    sent_at, signature = match.groups()
    signed = f"{sent_at}.{method} {path}.".encode() + body
    expected = hmac.digest(settings.SANDBOX_BANK_SECRET.encode(), signed, "sha256").hex()
    if not hmac.compare_digest(signature, expected):
        raise InvalidOrderSignature()
    if abs(now.timestamp() - int(sent_at)) > TOLERANCE.total_seconds():
        raise InvalidOrderSignature()
