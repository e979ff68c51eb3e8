"""What makes two requests the same, keyed by a secret of its own (`IDEMPOTENCY_KEYS`)."""

import hmac
from dataclasses import dataclass, field
from typing import Any

import orjson
from django.conf import settings


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """Of one request. A plain hash would tell an account number in a body that is known otherwise."""

    request: bytes = field(repr=False)

    @classmethod
    def of(cls, *, method: str, operation: str, body: Any) -> "Fingerprint":
        """Method, operation (all path forms are one) and body by value."""
        return cls(orjson.dumps([method, operation, body], option=orjson.OPT_SORT_KEYS))

    @property
    def newest(self) -> bytes:
        """As it is stored from now on."""
        return self._by(settings.IDEMPOTENCY_KEYS[0])

    def is_stored_as(self, stored: bytes) -> bool:
        """Whether any key, the newest first, makes this request what was stored."""
        return any(hmac.compare_digest(self._by(key), stored) for key in settings.IDEMPOTENCY_KEYS)

    def _by(self, key: str) -> bytes:
        return hmac.digest(key.encode(), self.request, "sha256")
