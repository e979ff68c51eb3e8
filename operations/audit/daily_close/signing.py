"""Ed25519 signatures (RFC 8032) of daily closes, with the key of the setting CLOSE_SIGNING_KEY."""

import base64
import hashlib

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from django.conf import settings
from django.utils.translation import gettext_lazy as _

MISSING = _("CLOSE_SIGNING_KEY is not set. `thaiqr-server new-secrets` prints one. Keep it in the safe.")


class NoSigningKey(Exception):
    """The setting CLOSE_SIGNING_KEY is empty."""


def sign(text: str) -> str:
    """The signature in base64. Raises NoSigningKey."""
    return base64.b64encode(_key().sign(text.encode())).decode()


def public_key() -> str:
    """The public key of the setting, as 32 bytes in base64. Raises NoSigningKey."""
    return base64.b64encode(_key().public_key().public_bytes_raw()).decode()


def known_keys() -> set[str]:
    """The public keys that this deployment signs and signed with."""
    return {*settings.CLOSE_PUBLIC_KEYS, *([public_key()] if settings.CLOSE_SIGNING_KEY else [])}


def is_public_key(text: str) -> bool:
    """Whether `text` is 32 bytes in base64."""
    try:
        return len(base64.b64decode(text, validate=True)) == 32
    except ValueError:
        return False


def fingerprint(public_key: str) -> str:
    """A short name of a public key that people compare, in the form of OpenSSH: "SHA256:..."."""
    digest = hashlib.sha256(base64.b64decode(public_key)).digest()
    return "SHA256:" + base64.b64encode(digest).decode().rstrip("=")


def is_valid(text: str, signature: str, public_key: str) -> bool:
    try:
        key = Ed25519PublicKey.from_public_bytes(base64.b64decode(public_key, validate=True))
        key.verify(base64.b64decode(signature, validate=True), text.encode())
    except (InvalidSignature, ValueError):
        return False
    return True


def _key() -> Ed25519PrivateKey:
    if not settings.CLOSE_SIGNING_KEY:
        raise NoSigningKey(str(MISSING))
    return Ed25519PrivateKey.from_private_bytes(base64.urlsafe_b64decode(settings.CLOSE_SIGNING_KEY))
