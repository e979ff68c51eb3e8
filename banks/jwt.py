"""JSON Web Tokens over a message: RS256 and nothing else (RFC 7515, RFC 7519, RFC 8725).

The claims are the fields of the message, with `iat`, `exp` and `jti`.
"""

import base64
import re
import uuid
from collections.abc import Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from functools import lru_cache
from typing import Any

import orjson
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, RSAPublicKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_pem_public_key

from banks import parsing

ALGORITHM = "RS256"
LIFETIME = timedelta(days=1)
TOLERANCE = timedelta(minutes=5)  # between the clocks of both sides
OWN_CLAIMS = ("iat", "exp", "jti")
_TOKEN = re.compile(r"([0-9A-Za-z_-]+)\.([0-9A-Za-z_-]+)\.([0-9A-Za-z_-]+)")


class InvalidToken(ValueError):
    """The token is malformed, not signed by the other side, for another message, or out of time."""


def sign(message: Mapping[str, Any], *, private_key: str, now: datetime) -> str:
    """A token over `message`. private_key: RSA, in PEM."""
    times = {"iat": int(now.timestamp()), "exp": int((now + LIFETIME).timestamp()), "jti": str(uuid.uuid4())}
    parts = ({"typ": "JWT", "alg": ALGORITHM}, {**message, **times})
    signed = b".".join(_encode(orjson.dumps(part)) for part in parts)
    signature = _private_key(private_key).sign(signed, PKCS1v15(), SHA256())
    return (signed + b"." + _encode(signature)).decode()


def verify(token: str, body: bytes, *, public_key: str, now: datetime) -> None:
    """Check that the holder of the key signed exactly the fields of `body`. Raises InvalidToken."""
    match = _TOKEN.fullmatch(token)
    if not match:
        raise InvalidToken("it is not a token")
    try:
        header, claims, signature = (_decode(part) for part in match.groups())
        # Never use the token's algorithm: attackers send "none", or HMAC with the public key.
        data = parsing.parse_json(header)
        if data.get("alg") != ALGORITHM or "crit" in data:
            raise InvalidToken("the algorithm is not allowed")
        _verify_signature(token.rpartition(".")[0], signature, public_key)
        _verify_claims(parsing.parse_json(claims), parsing.parse_json(body), now)
    except ValueError as error:
        raise InvalidToken(str(error)) from None


@lru_cache(maxsize=64)
def _private_key(pem: str) -> RSAPrivateKey:
    """Cached, because loading and checking a key takes 50 ms of CPU."""
    key = load_pem_private_key(pem.encode(), password=None)
    if not isinstance(key, RSAPrivateKey):
        raise ValueError("the key is not RSA")
    return key


def _verify_signature(signed: str, signature: bytes, public_key: str) -> None:
    key = load_pem_public_key(public_key.encode())
    if not isinstance(key, RSAPublicKey):
        raise InvalidToken("the key is not RSA")
    try:
        key.verify(signature, signed.encode(), PKCS1v15(), SHA256())
    except InvalidSignature:
        raise InvalidToken("the signature is wrong") from None


def _verify_claims(claims: dict[str, Any], message: dict[str, Any], now: datetime) -> None:
    moment, tolerance = now.timestamp(), TOLERANCE.total_seconds()
    if moment > _time_claim(claims, "exp", moment) + tolerance:
        raise InvalidToken("it has expired")
    if moment < _time_claim(claims, "iat", moment) - tolerance:
        raise InvalidToken("it was issued in the future")
    if {name: value for name, value in claims.items() if name not in OWN_CLAIMS} != message:
        raise InvalidToken("it is for another message")


def _time_claim(claims: Mapping[str, Any], name: str, default: float) -> float:
    value = claims.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise InvalidToken(f"{name} is not a time")
    return float(value)


def _encode(part: bytes) -> bytes:
    return base64.urlsafe_b64encode(part).rstrip(b"=")


def _decode(part: str) -> bytes:
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))
