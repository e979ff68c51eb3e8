"""Webhooks as merchants register them: every change of an endpoint, nowhere else."""

from copy import copy
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Exists, OuterRef

from core import ids, vault
from merchants.models import Merchant
from webhooks import probes, signing
from webhooks.errors import InvalidSecret, WebhookNotFound
from webhooks.models import Delivery, DeliveryState, Endpoint, EndpointStatus, Health

SETTLED_AT_ONCE = 100
# So long a renewed secret's predecessor also signs: time to bring the new one to every receiver.
OVERLAP = timedelta(hours=24)


def draft(
    *, merchant: Merchant, url: str, events: list[str], now: datetime, secret: str | None = None
) -> Endpoint:
    """A new endpoint, probed and not stored yet; call it outside any transaction.

    A type that is named twice counts once. Raises InvalidSecret, InvalidUrl, RateLimitExceeded,
    ServiceUnavailable.
    """
    endpoint_id = ids.new("wh_", now)
    endpoint = Endpoint(
        id=endpoint_id,
        merchant=merchant,
        url=url,
        events=list(dict.fromkeys(events)),
        secret_sealed=vault.seal(_usable(secret), context=endpoint_id),
        created_at=now,
        updated_at=now,
    )
    endpoint.last_ping_status = probes.probe(endpoint, now=now)
    return endpoint


def find(*, merchant: Merchant, webhook_id: str) -> Endpoint:
    """Raises WebhookNotFound."""
    found: Endpoint | None = None
    if ids.looks_right(webhook_id, "wh_"):
        found = Endpoint.objects.of(merchant).filter(pk=webhook_id).first()
    if found is None:
        raise WebhookNotFound(id=webhook_id)
    return found


def find_locked(*, merchant: Merchant, webhook_id: str) -> Endpoint:
    """`find`, and nobody else changes it until the transaction ends. Raises WebhookNotFound."""
    endpoint = _locked(find(merchant=merchant, webhook_id=webhook_id).id)
    if endpoint.deleted_at is not None:
        raise WebhookNotFound(id=webhook_id)
    return endpoint


def change(
    *,
    merchant: Merchant,
    webhook_id: str,
    now: datetime,
    url: str | None = None,
    events: list[str] | None = None,
    status: str | None = None,
) -> Endpoint:
    """Change what is given. Call it outside any transaction: a new URL is probed before anything is stored.

    Enabling resends nothing: what was held stays so until it is replayed. Raises WebhookNotFound, InvalidUrl,
    RateLimitExceeded, ServiceUnavailable.
    """
    found, pinged = find(merchant=merchant, webhook_id=webhook_id), {}
    if url is not None and url != found.url:
        moved = copy(found)
        moved.url = url
        pinged = {"url": url, "last_ping_status": probes.probe(moved, now=now)}
    with transaction.atomic():
        endpoint = find_locked(merchant=merchant, webhook_id=webhook_id)
        for name, value in pinged.items():
            setattr(endpoint, name, value)
        if events is not None:
            endpoint.events = list(dict.fromkeys(events))
        if status is not None and status != endpoint.status:
            endpoint.status = status
            endpoint.disabled_reason = "merchant" if status == EndpointStatus.DISABLED else ""
        if pinged or status == EndpointStatus.ACTIVE:
            # How it answered before says nothing now: it is told at once.
            Health.objects.filter(endpoint=endpoint).delete()
        endpoint.updated_at = now
        endpoint.save()
        _settle(endpoint, now)
    return endpoint


@transaction.atomic
def renew_secret(
    *, merchant: Merchant, webhook_id: str, now: datetime, secret: str | None = None
) -> Endpoint:
    """Sign with `secret`, or a new one, from now on; the one before also signs for 24 hours.

    Given the one that signs already, nothing changes: a repeat would else end the overlap.
    Raises WebhookNotFound, InvalidSecret.
    """
    endpoint, renewed = find_locked(merchant=merchant, webhook_id=webhook_id), _usable(secret)
    if renewed != endpoint.secret:
        endpoint.previous_secret_sealed, endpoint.previous_secret_until = (
            endpoint.secret_sealed,
            now + OVERLAP,
        )
        endpoint.secret_sealed, endpoint.updated_at = vault.seal(renewed, context=endpoint.id), now
        endpoint.save()
    return endpoint


@transaction.atomic
def delete(*, merchant: Merchant, webhook_id: str, now: datetime) -> None:
    """Tell this endpoint nothing more. Its deliveries stay readable to staff. Raises WebhookNotFound."""
    endpoint = find_locked(merchant=merchant, webhook_id=webhook_id)
    endpoint.deleted_at = endpoint.updated_at = now
    endpoint.save(update_fields=["deleted_at", "updated_at"])
    _settle(endpoint, now)


@transaction.atomic
def disable(*, endpoint_id: str, reason: str, now: datetime) -> None:
    """Stop telling an endpoint; what it should have been told is held for it. Again changes nothing."""
    endpoint = _locked(endpoint_id)
    if endpoint.status == EndpointStatus.DISABLED:
        return
    endpoint.status, endpoint.disabled_reason, endpoint.updated_at = EndpointStatus.DISABLED, reason, now
    endpoint.save(update_fields=["status", "disabled_reason", "updated_at"])
    _settle(endpoint, now)


def settle_left(*, now: datetime) -> None:
    """Hold or end what came in, or back from a worker, while its endpoint was disabled or deleted."""
    waiting = Delivery.objects.filter(endpoint=OuterRef("pk"), state=DeliveryState.PENDING)
    for endpoint_id in Endpoint.objects.silent().filter(Exists(waiting)).values_list("pk")[:SETTLED_AT_ONCE]:
        with transaction.atomic():
            _settle(_locked(*endpoint_id), now)


def _settle(endpoint: Endpoint, now: datetime) -> None:
    deliveries = Delivery.objects.filter(endpoint=endpoint)
    if endpoint.deleted_at is not None:
        left = deliveries.filter(state__in=[DeliveryState.PENDING, DeliveryState.HELD])
        left.update(state=DeliveryState.FAILED, finished_at=now)
    elif endpoint.status == EndpointStatus.DISABLED:
        pending = deliveries.filter(state=DeliveryState.PENDING)
        pending.filter(resend=0).update(state=DeliveryState.HELD)
        pending.exclude(resend=0).update(state=DeliveryState.FAILED, finished_at=now)


def _locked(endpoint_id: str) -> Endpoint:
    endpoint: Endpoint = Endpoint.objects.select_for_update(no_key=True).get(pk=endpoint_id)
    return endpoint


def _usable(secret: str | None) -> str:
    if secret is None:
        return signing.new_secret()
    try:
        signing.key_of(secret)
    except signing.BadSecret as reason:
        raise InvalidSecret(str(reason), param="secret") from None
    return secret
