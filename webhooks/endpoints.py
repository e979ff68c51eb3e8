"""Webhooks as merchants register them: every change of an endpoint, nowhere else."""

from copy import copy
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction

from core import ids, rows, security_log, vault
from core.security_log import SecurityEvent
from merchants.models import Merchant
from webhooks import probes, signing
from webhooks.delivery import inactive_endpoints
from webhooks.errors import InvalidSecret, TooManyWebhooks, WebhookNotFound
from webhooks.models import (
    DisabledReason,
    Endpoint,
    EndpointAction,
    EndpointActionType,
    EndpointHealth,
    EndpointStatus,
)

# How long the previous secret also signs after a rotation.
SECRET_OVERLAP = timedelta(hours=24)


def prepare(
    *, merchant: Merchant, url: str, events: list[str], now: datetime, secret: str | None = None
) -> Endpoint:
    """A new endpoint, probed and not stored yet; call it outside any transaction.

    A type that is named twice counts once. A merchant at its limit gets no probe. Raises InvalidSecret,
    TooManyWebhooks, InvalidUrl, RateLimitExceeded, ServiceUnavailable.
    """
    _check_webhook_limit(merchant)
    endpoint_id = ids.new("wh_", now)
    endpoint = Endpoint(
        id=endpoint_id,
        merchant=merchant,
        url=url,
        events=_without_duplicates(events),
        secret_sealed=vault.seal(_checked_secret(secret), context=endpoint_id),
        created_at=now,
        updated_at=now,
    )
    endpoint.last_ping_status = probes.probe(endpoint, now=now)
    EndpointHealth(endpoint=endpoint, verified_at=_verified_at(endpoint.last_ping_status, now))
    return endpoint


@transaction.atomic
def store(endpoint: Endpoint) -> None:
    """Insert a drafted endpoint. The lock on its merchant lets one creation at a time count, so that two at
    once cannot pass the limit. Raises TooManyWebhooks.
    """
    Merchant.objects.select_for_update(no_key=True).get(pk=endpoint.merchant_id)
    _check_webhook_limit(endpoint.merchant)
    created = EndpointAction.new(endpoint.id, EndpointActionType.CREATED, now=endpoint.created_at)
    rows.insert_together([endpoint, endpoint.health, created])


def _check_webhook_limit(merchant: Merchant) -> None:
    limit = settings.WEBHOOKS_PER_MERCHANT
    if Endpoint.objects.of(merchant).count() >= limit:
        raise TooManyWebhooks(limit=limit)


def find(*, merchant: Merchant, webhook_id: str) -> Endpoint:
    """Raises WebhookNotFound."""
    found: Endpoint | None = None
    if ids.looks_right(webhook_id, "wh_"):
        found = Endpoint.objects.of(merchant).select_related("health").filter(pk=webhook_id).first()
    if found is None:
        raise WebhookNotFound(id=webhook_id)
    return found


def find_for_update(*, merchant: Merchant, webhook_id: str) -> Endpoint:
    """`find`, and nobody else changes it until the transaction ends. Raises WebhookNotFound."""
    endpoint = Endpoint.objects.lock(find(merchant=merchant, webhook_id=webhook_id).id)
    if endpoint.deleted_at is not None:
        raise WebhookNotFound(id=webhook_id)
    return endpoint


def update(
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
    found, pinged = find(merchant=merchant, webhook_id=webhook_id), None
    if url is not None and url != found.url:
        moved = copy(found)
        moved.url = url
        moved.last_ping_status, pinged = probes.probe(moved, now=now), moved
    with transaction.atomic():
        endpoint = find_for_update(merchant=merchant, webhook_id=webhook_id)
        if pinged is not None:
            _change_url(endpoint, pinged, now)
        if events is not None:
            _change_events(endpoint, _without_duplicates(events), now)
        if status == EndpointStatus.DISABLED:
            _disable(endpoint, DisabledReason.MERCHANT, now)
        elif status == EndpointStatus.ACTIVE:
            _enable(endpoint, now)
        endpoint.updated_at = now
        endpoint.save()
        inactive_endpoints.hold_or_fail(endpoint, now)
    return endpoint


def reveal_secret(*, merchant: Merchant, webhook_id: str) -> str:
    """The secret that signs now. Raises WebhookNotFound."""
    endpoint = find(merchant=merchant, webhook_id=webhook_id)
    security_log.record(SecurityEvent.SECRET_REVEALED, subject=endpoint.id, merchant_id=merchant.id)
    return endpoint.secret


@transaction.atomic
def rotate_secret(
    *, merchant: Merchant, webhook_id: str, now: datetime, secret: str | None = None
) -> Endpoint:
    """Sign with `secret`, or a new one, from now on; the one before also signs for 24 hours.

    Given the one that signs already, nothing changes: a repeat would else end the overlap.
    Raises WebhookNotFound, InvalidSecret.
    """
    endpoint, new_secret = find_for_update(merchant=merchant, webhook_id=webhook_id), _checked_secret(secret)
    if new_secret != endpoint.secret:
        endpoint.previous_secret_sealed, endpoint.previous_secret_until = (
            endpoint.secret_sealed,
            now + SECRET_OVERLAP,
        )
        endpoint.secret_sealed, endpoint.updated_at = vault.seal(new_secret, context=endpoint.id), now
        endpoint.save()
        EndpointAction.record(endpoint.id, EndpointActionType.SECRET_ROTATED, now=now)
        security_log.record_on_commit(
            SecurityEvent.SECRET_ROTATED, subject=endpoint.id, merchant_id=merchant.id
        )
    return endpoint


@transaction.atomic
def delete(*, merchant: Merchant, webhook_id: str, now: datetime) -> None:
    """Delete an endpoint. Staff can still read its deliveries. Raises WebhookNotFound."""
    endpoint = find_for_update(merchant=merchant, webhook_id=webhook_id)
    endpoint.deleted_at = endpoint.updated_at = now
    endpoint.save(update_fields=["deleted_at", "updated_at"])
    EndpointAction.record(endpoint.id, EndpointActionType.DELETED, now=now)
    inactive_endpoints.hold_or_fail(endpoint, now)


@transaction.atomic
def disable(
    *,
    endpoint_id: str,
    reason: DisabledReason,
    now: datetime,
    attempt_started_at: datetime | None = None,
) -> None:
    """Disable an endpoint and hold its deliveries.

    A repeat only holds what came back from a worker meanwhile. An attempt that started at
    `attempt_started_at`, before the last change of URL or enabling, changes nothing.
    """
    endpoint = Endpoint.objects.lock(endpoint_id)
    if (
        attempt_started_at is not None
        and EndpointHealth.objects.filter(pk=endpoint_id, reset_at__gt=attempt_started_at).exists()
    ):
        return
    if endpoint.deleted_at is None and _disable(endpoint, reason, now):
        endpoint.updated_at = now
        endpoint.save(update_fields=["status", "disabled_reason", "updated_at"])
    inactive_endpoints.hold_or_fail(endpoint, now)


@transaction.atomic
def enable(*, endpoint_id: str, now: datetime) -> None:
    """Enable an endpoint and reset its health. Held deliveries stay held until a replay."""
    endpoint = Endpoint.objects.lock(endpoint_id)
    if endpoint.deleted_at is None and _enable(endpoint, now):
        endpoint.updated_at = now
        endpoint.save(update_fields=["status", "disabled_reason", "updated_at"])


@transaction.atomic
def skip_pause(*, endpoint_id: str, now: datetime) -> None:
    """End the wait of a pause, so that one delivery is sent at once. Without a pause nothing changes."""
    active = Endpoint.objects.filter(status=EndpointStatus.ACTIVE, deleted_at=None)
    if EndpointHealth.objects.filter(pk=endpoint_id, endpoint__in=active, paused_until__gt=now).update(
        paused_until=now
    ):
        EndpointAction.record(endpoint_id, EndpointActionType.PAUSE_SKIPPED, now=now)


def _change_url(endpoint: Endpoint, moved: Endpoint, now: datetime) -> None:
    change = f"{endpoint.url} \N{RIGHTWARDS ARROW} {moved.url}"
    EndpointAction.record(
        endpoint.id,
        EndpointActionType.URL_CHANGED,
        now=now,
        detail=change,
    )
    endpoint.url, endpoint.last_ping_status = moved.url, moved.last_ping_status
    _reset_health(endpoint, now)
    # Where the new URL leads, somebody else may be.
    endpoint.health.verified_at = _verified_at(moved.last_ping_status, now)
    endpoint.health.save(update_fields=["verified_at"])


def _verified_at(ping_status: int | None, now: datetime) -> datetime | None:
    return now if ping_status is not None and ping_status // 100 == 2 else None


def _change_events(endpoint: Endpoint, events: list[str], now: datetime) -> None:
    if events != endpoint.events:
        before = "before: " + ", ".join(endpoint.events)
        EndpointAction.record(
            endpoint.id,
            EndpointActionType.EVENTS_CHANGED,
            now=now,
            detail=before,
        )
        endpoint.events = events


def _disable(endpoint: Endpoint, reason: DisabledReason, now: datetime) -> bool:
    """Whether it was active."""
    if endpoint.status == EndpointStatus.DISABLED:
        return False
    endpoint.status, endpoint.disabled_reason = EndpointStatus.DISABLED, reason
    EndpointAction.record(endpoint.id, EndpointActionType.DISABLED, now=now, detail=reason.value)
    return True


def _enable(endpoint: Endpoint, now: datetime) -> bool:
    """Enable the endpoint and reset its health. Return whether it was disabled."""
    _reset_health(endpoint, now)
    if endpoint.status == EndpointStatus.ACTIVE:
        return False
    inactive_endpoints.hold_or_fail(endpoint, now)  # what came in last, while it was disabled
    endpoint.status, endpoint.disabled_reason = EndpointStatus.ACTIVE, ""
    EndpointAction.record(endpoint.id, EndpointActionType.ENABLED, now=now)
    return True


def _reset_health(endpoint: Endpoint, now: datetime) -> None:
    health, _ = EndpointHealth.objects.select_for_update(no_key=True).get_or_create(endpoint=endpoint)
    EndpointHealth(
        endpoint=endpoint,
        reset_at=now,
        verified_at=health.verified_at,
        # Otherwise each change would give an unverified endpoint an attempt before its time.
        attempted_at=health.attempted_at,
    ).save(force_update=True)
    if health.paused_at is not None:
        EndpointAction.record(endpoint.id, EndpointActionType.RESUMED, now=now)


def _without_duplicates(events: list[str]) -> list[str]:
    return list(dict.fromkeys(events))


def _checked_secret(secret: str | None) -> str:
    if secret is None:
        return signing.new_secret()
    try:
        signing.key_bytes(secret)
    except signing.BadSecret as reason:
        raise InvalidSecret(str(reason), param="secret") from None
    return secret
