"""Recognise a repeated request by its fingerprint. The same key with another body is refused."""

import hmac
from dataclasses import dataclass, field
from typing import Any

import orjson
from django.conf import settings

from idempotency.errors import IdempotencyKeyReused

LARGEST = 2.0**53  # beyond it floats are not all integers; no field has such values


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """A keyed hash of a request. A plain hash would reveal an account number in an otherwise known body."""

    request: bytes = field(repr=False)

    @classmethod
    def of(cls, *, method: str, operation: str, body: Any) -> "Fingerprint":
        """The fingerprint of method, operation (the same for all path forms) and body by value.

        A number that orjson does not know is an `OtherNumber` of `core.http.strict_json`.
        """
        parts = [method, operation, _with_integers(body)]
        return cls(
            orjson.dumps(parts, default=lambda each: {"number": each.text}, option=orjson.OPT_SORT_KEYS)
        )

    @property
    def digests(self) -> list[bytes]:
        """The hashes by all keys, the newest first. The first is the one to store."""
        return [hmac.digest(key.encode(), self.request, "sha256") for key in settings.IDEMPOTENCY_KEYS]

    def check(self, stored: bytes) -> None:
        """Raises IdempotencyKeyReused unless `stored` is the hash of this request, by any key."""
        if not any(hmac.compare_digest(digest, stored) for digest in self.digests):
            raise IdempotencyKeyReused()


def _with_integers(body: Any) -> Any:
    """The body with fields such as `15.0` as the integers that they are. Metadata stays as it is.

    An amount that is written so is invalid (`core.http.fields.Amount`), and no repeat of a valid request.
    """
    if not isinstance(body, dict) or float not in map(type, body.values()):
        return body
    return {
        name: int(each)
        if name != "amount" and type(each) is float and each.is_integer() and abs(each) < LARGEST
        else each
        for name, each in body.items()
    }
