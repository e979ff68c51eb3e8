"""Standard Webhooks signatures: HMAC-SHA256 of `id.timestamp.body`, as version `v1`.

Source: the Standard Webhooks specification, sections "Signature scheme" and "Secret".
"""

import base64
import binascii
import hashlib
import hmac
import secrets as randomness
from collections.abc import Sequence

PREFIX = "whsec_"
NEW_SECRET_BYTES = 32
SECRET_BYTES = range(24, 65)


class BadSecret(ValueError):
    """The text cannot be the secret of a signature."""


def new_secret() -> str:
    """Make a random secret in the form of the Standard Webhooks libraries."""
    return PREFIX + base64.b64encode(randomness.token_bytes(NEW_SECRET_BYTES)).decode()


def key_bytes(secret: str) -> bytes:
    """The HMAC key: what is encoded after `whsec_`, or the UTF-8 bytes of other text. Raises BadSecret."""
    if not secret:
        raise BadSecret("must not be empty")
    if secret.startswith(PREFIX):
        return _decode_base64(secret.removeprefix(PREFIX))
    try:
        return secret.encode()
    except UnicodeEncodeError:
        raise BadSecret("must be valid Unicode text") from None


def sign(*, secrets: Sequence[str], message_id: str, timestamp: int, body: bytes) -> str:
    """Return the `webhook-signature` header: one `v1,<base64>` per secret, in their order.

    `timestamp` is the time of the attempt in seconds. Raises ValueError without a secret, and for an id with
    a dot, because two messages could then have the same signed text.
    """
    if not secrets:
        raise BadSecret("A message must be signed with at least one secret.")
    if "." in message_id:
        raise ValueError("A message id may not contain a dot.")
    content = f"{message_id}.{timestamp}.".encode() + body
    digests = [hmac.digest(key_bytes(secret), content, hashlib.sha256) for secret in secrets]
    return " ".join("v1," + base64.b64encode(digest).decode() for digest in digests)


def headers(*, secrets: Sequence[str], message_id: str, timestamp: int, body: bytes) -> dict[str, str]:
    """Return the three headers of a signed message."""
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": sign(secrets=secrets, message_id=message_id, timestamp=timestamp, body=body),
    }


def _decode_base64(text: str) -> bytes:
    # Lenient decoding could turn a typing error into a short or empty key, with which anybody can forge.
    try:
        key = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise BadSecret("must be base64 after whsec_") from None
    if len(key) not in SECRET_BYTES or base64.b64encode(key).decode() != text:
        raise BadSecret("must be base64 of 24 to 64 bytes after whsec_")
    return key
