"""Webhooks as merchants register them: every change of an endpoint, nowhere else."""

from datetime import datetime

from django.db import transaction
from django.db.models import Exists, OuterRef

from core import ids, vault
from merchants.models import Merchant
from webhooks import probes, signing
from webhooks.errors import InvalidSecret, WebhookNotFound
from webhooks.models import Delivery, DeliveryState, Endpoint, EndpointStatus

SETTLED_AT_ONCE = 100


def draft(
    *, merchant: Merchant, url: str, events: list[str], now: datetime, secret: str | None = None
) -> Endpoint:
    """A new endpoint, probed and not stored yet; call it outside any transaction.

    A type that is named twice counts once. Raises InvalidSecret, InvalidUrl, ServiceUnavailable.
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


@transaction.atomic
def delete(*, merchant: Merchant, webhook_id: str, now: datetime) -> None:
    """Tell this endpoint nothing more. Its deliveries stay readable to staff. Raises WebhookNotFound."""
    endpoint = _locked(find(merchant=merchant, webhook_id=webhook_id).id)
    if endpoint.deleted_at is not None:
        raise WebhookNotFound(id=webhook_id)
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
        deliveries.filter(state=DeliveryState.PENDING).update(state=DeliveryState.HELD)


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
