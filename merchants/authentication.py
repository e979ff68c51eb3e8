"""`Authorization: Bearer <secret key>` becomes a merchant, or one and the same 401 for every bad key."""

from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

from rest_framework.authentication import BaseAuthentication
from rest_framework.request import Request

from core import clock, origin, rows
from merchants import secrets
from merchants.errors import AuthenticationFailed
from merchants.models import ApiKey, Merchant

NOTE_USE_EVERY = timedelta(minutes=1)  # a write for each request would double the cost of reading
_KEY_COLUMNS = len(ApiKey._meta.concrete_fields)


class BearerKey(BaseAuthentication):
    """Asks the database for each request, so that a revoked key is dead at once."""

    def authenticate(self, request: Request) -> tuple[Merchant, ApiKey]:
        scheme, _, secret = request.META.get("HTTP_AUTHORIZATION", "").partition(" ")
        if scheme.lower() != "bearer" or not secrets.is_well_formed(secret):
            raise AuthenticationFailed()
        merchant, key = find(secret, clock.now())
        request._request.merchant_id = merchant.id  # type: ignore[attr-defined]
        origin.act_as(f"key:{key.public_id}")
        return merchant, key

    def authenticate_header(self, request: Request) -> str:
        return "Bearer"


def find(secret: str, now: datetime) -> tuple[Merchant, ApiKey]:
    """The merchant and the key of `secret`, by one query. Raises AuthenticationFailed."""
    found = rows.run(_sql(), [secrets.digest(secret)]).fetchone()
    if found is None:
        raise AuthenticationFailed()
    key = rows.instance(ApiKey, found[:_KEY_COLUMNS])
    if not key.is_usable(now):
        raise AuthenticationFailed()
    _note_use(key, now)
    return rows.instance(Merchant, found[_KEY_COLUMNS:]), key


@lru_cache
def _sql() -> str:
    return (
        f"SELECT {rows.columns(ApiKey, 'k')}, {rows.columns(Merchant, 'm')} "  # noqa: S608
        "FROM merchants_apikey k JOIN merchants_merchant m ON m.id = k.merchant_id WHERE k.digest = %s"
    )


def _note_use(key: ApiKey, now: datetime) -> None:
    if key.last_used_at is None or now - key.last_used_at >= NOTE_USE_EVERY:
        ApiKey.objects.filter(pk=key.pk).update(last_used_at=now)


def merchant_of(request: Any) -> Merchant:
    """The merchant that asks."""
    merchant: Merchant = request.user
    return merchant
