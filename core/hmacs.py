"""HMAC-SHA256 with keys that are used for each request."""

import hmac
from functools import lru_cache


def sha256(key: str, message: bytes) -> bytes:
    """The HMAC-SHA256 of a message.

    `hmac.digest` prepares the key each time. It also releases the interpreter lock, and under load a thread
    waits to get it back.
    """
    prepared = _prepared(key).copy()
    prepared.update(message)
    return prepared.digest()


@lru_cache(maxsize=8)
def _prepared(key: str) -> hmac.HMAC:
    return hmac.new(key.encode(), digestmod="sha256")
