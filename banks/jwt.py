"""JSON Web Tokens over a message: RS256 and nothing else (RFC 7515, RFC 7519, RFC 8725).

The claims are the fields of the message, with `iat`, `exp` and `jti`.
"""

import uuid
from collections.abc import Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from functools import lru_cache
from typing import Any

import orjson
from jwt import PyJWS, PyJWTError

from banks import parsing

ALGORITHM = "RS256"
LIFETIME = timedelta(days=1)
TOLERANCE = timedelta(minutes=5)  # between the clocks of both sides
OWN_CLAIMS = ("iat", "exp", "jti")
# Never the algorithm that a token names: attackers send "none", or HMAC with the public key.
_rs256 = PyJWS([ALGORITHM])


class InvalidToken(ValueError):
    """The token is malformed, not signed by the other side, for another message, or out of time."""


def sign(message: Mapping[str, Any], *, private_key: str, now: datetime) -> str:
    """A token over `message`. private_key: RSA, in PEM."""
    times = {"iat": int(now.timestamp()), "exp": int((now + LIFETIME).timestamp()), "jti": str(uuid.uuid4())}
    return _rs256.encode(orjson.dumps({**message, **times}), _loaded(private_key), ALGORITHM)


def verify(token: str, body: bytes, *, public_key: str, now: datetime) -> None:
    """Check that the holder of the key signed exactly the fields of `body`. Raises InvalidToken."""
    try:
        claims = _rs256.decode(token, public_key, [ALGORITHM])
        # PyJWT would read the time itself, and other numbers than ours.
        _verify_claims(parsing.parse_json(claims), parsing.parse_json(body), now)
    except (PyJWTError, ValueError) as error:
        raise InvalidToken(str(error)) from None


@lru_cache(maxsize=64)
def _loaded(private_key: str) -> Any:
    """Cached, because loading and checking a key takes 50 ms of CPU."""
    return _rs256.get_algorithm_by_name(ALGORITHM).prepare_key(private_key)


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
