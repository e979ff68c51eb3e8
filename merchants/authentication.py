"""Authentication of merchants by `Authorization: Bearer <secret key>`. All invalid keys get the same 401."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

from rest_framework.request import Request

from core import clock, request_context
from core.database import rows
from core.http import client_addresses
from core.observing import security_log
from core.observing.security_log import SecurityEvent
from merchants import secret_keys
from merchants.errors import AddressNotAllowed, AuthenticationFailed
from merchants.models import MAX_SEEN_NETWORKS, ApiKey, Merchant
from merchants.refused_keys import refused_keys

OTHER_SCHEME = "Authorization must be the word Bearer, a space and the secret key"
RECORD_USE_EVERY = timedelta(minutes=1)  # a write for each request would double its cost
# Writes nothing if another request recorded the same network first.
RECORD_NETWORK = """
UPDATE merchants_apikey SET last_used_at = %s,
    seen_networks = (seen_networks || %s::varchar)[greatest(cardinality(seen_networks) + 2 - %s, 1):]
WHERE id = %s AND NOT %s = ANY(seen_networks)
"""
_KEY_COLUMNS = len(ApiKey._meta.concrete_fields)
_ALL_COLUMNS = _KEY_COLUMNS + len(Merchant._meta.concrete_fields)


@dataclass(frozen=True)
class ReadWithKey:
    """Columns that the query for the key also reads, which saves a round trip."""

    columns: str  # SQL; `m` is the merchant
    join: str = ""  # SQL of a join that finds at most one row
    # Those for `%s` in the join, from the arguments of the path.
    values: Callable[[Mapping[str, Any]], list[Any]] = lambda arguments: []


NOTHING_ELSE = ReadWithKey("NULL")


def authenticate(
    request: Request, other: ReadWithKey, arguments: Mapping[str, Any]
) -> tuple[Merchant, ApiKey, Sequence[Any]]:
    """The merchant, the key, and the values of the columns of `other`."""
    merchant, key, found = authenticate_headers(request.META, other, arguments)
    request._request.merchant_id = merchant.id  # type: ignore[attr-defined]
    return merchant, key, found


def authenticate_headers(
    headers: Mapping[str, Any], other: ReadWithKey, arguments: Mapping[str, Any]
) -> tuple[Merchant, ApiKey, Sequence[Any]]:
    """`authenticate` by the META of a request, whose address the context has.

    Queries the database for each request, so that a revoked key stops at once.
    """
    scheme, _, secret = headers.get("HTTP_AUTHORIZATION", "").partition(" ")
    is_key = scheme.lower() == "bearer" and secret_keys.is_well_formed(secret)
    digest = secret_keys.digest(secret) if is_key else None
    network = client_addresses.network_of(request_context.current().address, ipv6_bits=64)
    refused_keys.check(network, digest)
    try:
        merchant, key, found = _find_key(digest, clock.now(), other, arguments)
    except AuthenticationFailed:
        refused_keys.count(network, digest)
        # Is the key not where and as it must be? That says nothing about the key.
        is_other = scheme.lower() != "bearer" or secret.lower().startswith(("bearer", '"', "'"))
        if is_other if scheme else "HTTP_X_API_KEY" in headers:
            raise AuthenticationFailed(detail=OTHER_SCHEME) from None
        raise
    except AddressNotAllowed:
        refused_keys.count(network, None)  # the key is valid in another network
        raise
    return merchant, key, found


def _find_key(
    digest: bytes | None, now: datetime, other: ReadWithKey, arguments: Mapping[str, Any]
) -> tuple[Merchant, ApiKey, Sequence[Any]]:
    """The merchant, the key and other columns, by one query. Raises AuthenticationFailed, AddressNotAllowed,
    MerchantSuspended.

    digest: the hash of the secret, or None if the header has no key.
    """
    found = None
    if digest is not None:
        found = rows.run(_sql(other), [*other.values(arguments), digest]).fetchone()
    if found is None:
        raise AuthenticationFailed()
    key = rows.instance(ApiKey, found[:_KEY_COLUMNS])
    request_context.set_actor(f"key:{key.public_id}")  # also of an expired key, for the security log
    if not key.is_usable(now):
        raise AuthenticationFailed()
    if key.networks and not client_addresses.is_among(request_context.current().address, key.networks):
        raise AddressNotAllowed()
    refused_keys.remember_valid(bytes(key.digest))
    _record_use(key, now)
    merchant = rows.instance(Merchant, found[_KEY_COLUMNS:_ALL_COLUMNS])
    merchant.check_open()
    return merchant, key, found[_ALL_COLUMNS:]


@lru_cache
def _sql(other: ReadWithKey) -> str:
    return (
        f"SELECT {rows.columns(ApiKey, 'k')}, {rows.columns(Merchant, 'm')}, {other.columns} "  # noqa: S608
        f"FROM merchants_apikey k JOIN merchants_merchant m ON m.id = k.merchant_id {other.join} "
        "WHERE k.digest = %s"
    )


def _record_use(key: ApiKey, now: datetime) -> None:
    """Record the use of a key once a minute, and each new network."""
    network = client_addresses.network_of(request_context.current().address, ipv4_bits=24, ipv6_bits=48)
    is_new = bool(network) and network not in key.seen_networks
    if not is_new and key.last_used_at is not None and now - key.last_used_at < RECORD_USE_EVERY:
        return
    refused_keys.share_valid(bytes(key.digest))
    if not is_new:
        ApiKey.objects.filter(pk=key.pk).update(last_used_at=now)
    elif rows.run(RECORD_NETWORK, [now, network, MAX_SEEN_NETWORKS, key.pk, network]).rowcount:
        security_log.record(
            SecurityEvent.KEY_USED_FROM_NEW_NETWORK,
            subject=f"key:{key.public_id}",
            merchant_id=key.merchant_id,
            network=network,
        )


def merchant_of(request: Any) -> Merchant:
    """The authenticated merchant."""
    merchant: Merchant = request.user
    return merchant
