"""Webhooks as merchants register them: every change of an endpoint, nowhere else."""

from copy import copy
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction

from core import ids, rows, security_log, vault
from core.security_log import SecurityEvent
from merchants.models import Merchant
from webhooks import acts, probes, settling, signing
from webhooks.errors import InvalidSecret, TooManyWebhooks, WebhookNotFound
from webhooks.models import (
    Act,
    DisabledReason,
    Endpoint,
    EndpointStatus,
    Health,
)

# So long a renewed secret's predecessor also signs: time to bring the new one to every receiver.
OVERLAP = timedelta(hours=24)
# Whoever has one message can try secrets offline, so a secret of a merchant's own must not be short.


def draft(
    *, merchant: Merchant, url: str, events: list[str], now: datetime, secret: str | None = None
) -> Endpoint:
    """A new endpoint, probed and not stored yet; call it outside any transaction.

    A type that is named twice counts once. A merchant at its limit gets no probe. Raises InvalidSecret,
    TooManyWebhooks, InvalidUrl, RateLimitExceeded, ServiceUnavailable.
    """
    _refuse_one_too_many(merchant)
    endpoint_id = ids.new("wh_", now)
    endpoint = Endpoint(
        id=endpoint_id,
        merchant=merchant,
        url=url,
        events=_each_once(events),
        secret_sealed=vault.seal(_usable(secret), context=endpoint_id),
        created_at=now,
        updated_at=now,
    )
    endpoint.last_ping_status = probes.probe(endpoint, now=now)
    Health(endpoint=endpoint, verified_at=_verified_by(endpoint.last_ping_status, now))
    return endpoint


@transaction.atomic
def store(endpoint: Endpoint) -> None:
    """Insert a drafted endpoint. The lock on its merchant lets one creation at a time count, so that two at
    once cannot pass the limit. Raises TooManyWebhooks.
    """
    Merchant.objects.select_for_update(no_key=True).get(pk=endpoint.merchant_id)
    _refuse_one_too_many(endpoint.merchant)
    created = acts.draft(endpoint.id, Act.CREATED, actor=acts.MERCHANT, at=endpoint.created_at)
    rows.insert_together([endpoint, endpoint.health, created])


def _refuse_one_too_many(merchant: Merchant) -> None:
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


def find_locked(*, merchant: Merchant, webhook_id: str) -> Endpoint:
    """`find`, and nobody else changes it until the transaction ends. Raises WebhookNotFound."""
    endpoint = Endpoint.objects.locked(find(merchant=merchant, webhook_id=webhook_id).id)
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
    found, pinged = find(merchant=merchant, webhook_id=webhook_id), None
    if url is not None and url != found.url:
        moved = copy(found)
        moved.url = url
        moved.last_ping_status, pinged = probes.probe(moved, now=now), moved
    with transaction.atomic():
        endpoint = find_locked(merchant=merchant, webhook_id=webhook_id)
        if pinged is not None:
            _move(endpoint, pinged, now)
        if events is not None:
            _subscribe(endpoint, _each_once(events), now)
        if status == EndpointStatus.DISABLED:
            _disable(endpoint, DisabledReason.MERCHANT, acts.MERCHANT, now)
        elif status == EndpointStatus.ACTIVE:
            _enable(endpoint, acts.MERCHANT, now)
        endpoint.updated_at = now
        endpoint.save()
        settling.settle(endpoint, now)
    return endpoint


def reveal_secret(*, merchant: Merchant, webhook_id: str) -> str:
    """The secret that signs now. Raises WebhookNotFound."""
    endpoint = find(merchant=merchant, webhook_id=webhook_id)
    security_log.record(SecurityEvent.SECRET_REVEALED, subject=endpoint.id, merchant_id=merchant.id)
    return endpoint.secret


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
        acts.note(endpoint.id, Act.SECRET_RENEWED, actor=acts.MERCHANT, at=now)
        security_log.record_on_commit(
            SecurityEvent.SECRET_ROTATED, subject=endpoint.id, merchant_id=merchant.id
        )
    return endpoint


@transaction.atomic
def delete(*, merchant: Merchant, webhook_id: str, now: datetime) -> None:
    """Tell this endpoint nothing more. Its deliveries stay readable to staff. Raises WebhookNotFound."""
    endpoint = find_locked(merchant=merchant, webhook_id=webhook_id)
    endpoint.deleted_at = endpoint.updated_at = now
    endpoint.save(update_fields=["deleted_at", "updated_at"])
    acts.note(endpoint.id, Act.DELETED, actor=acts.MERCHANT, at=now)
    settling.settle(endpoint, now)


@transaction.atomic
def disable(
    *,
    endpoint_id: str,
    reason: DisabledReason,
    now: datetime,
    actor: str = acts.SYSTEM,
    judged_by: datetime | None = None,
) -> None:
    """Stop telling an endpoint; what it should have been told is held for it.

    Again, it only holds what came back from a worker meanwhile. An attempt that began at `judged_by`, before
    the endpoint was moved or enabled, changes nothing.
    """
    endpoint = Endpoint.objects.locked(endpoint_id)
    if judged_by is not None and Health.objects.filter(pk=endpoint_id, forgotten_at__gt=judged_by).exists():
        return
    if endpoint.deleted_at is None and _disable(endpoint, reason, actor, now):
        endpoint.updated_at = now
        endpoint.save(update_fields=["status", "disabled_reason", "updated_at"])
    settling.settle(endpoint, now)


@transaction.atomic
def enable(*, endpoint_id: str, actor: str, now: datetime) -> None:
    """Tell an endpoint again, as if it had never failed. What was held stays so until it is replayed."""
    endpoint = Endpoint.objects.locked(endpoint_id)
    if endpoint.deleted_at is None and _enable(endpoint, actor, now):
        endpoint.updated_at = now
        endpoint.save(update_fields=["status", "disabled_reason", "updated_at"])


@transaction.atomic
def try_now(*, endpoint_id: str, actor: str, now: datetime) -> None:
    """Do not wait for the end of a pause: one delivery tries at once. Without a pause nothing changes."""
    told = Endpoint.objects.filter(status=EndpointStatus.ACTIVE, deleted_at=None)
    if Health.objects.filter(pk=endpoint_id, endpoint__in=told, paused_until__gt=now).update(
        paused_until=now
    ):
        acts.note(endpoint_id, Act.TRIED, actor=actor, at=now)


def _move(endpoint: Endpoint, moved: Endpoint, now: datetime) -> None:
    change = f"{endpoint.url} \N{RIGHTWARDS ARROW} {moved.url}"
    acts.note(endpoint.id, Act.URL_CHANGED, actor=acts.MERCHANT, at=now, detail=change)
    endpoint.url, endpoint.last_ping_status = moved.url, moved.last_ping_status
    _forget_health(endpoint, acts.MERCHANT, now)
    # Where the new URL leads, somebody else may be.
    endpoint.health.verified_at = _verified_by(moved.last_ping_status, now)
    endpoint.health.save(update_fields=["verified_at"])


def _verified_by(ping_status: int | None, now: datetime) -> datetime | None:
    return now if ping_status is not None and ping_status // 100 == 2 else None


def _subscribe(endpoint: Endpoint, events: list[str], now: datetime) -> None:
    if events != endpoint.events:
        before = "before: " + ", ".join(endpoint.events)
        acts.note(endpoint.id, Act.EVENTS_CHANGED, actor=acts.MERCHANT, at=now, detail=before)
        endpoint.events = events


def _disable(endpoint: Endpoint, reason: DisabledReason, actor: str, now: datetime) -> bool:
    """Whether it was active."""
    if endpoint.status == EndpointStatus.DISABLED:
        return False
    endpoint.status, endpoint.disabled_reason = EndpointStatus.DISABLED, reason
    acts.note(endpoint.id, Act.DISABLED, actor=actor, at=now, detail=reason.value)
    return True


def _enable(endpoint: Endpoint, actor: str, now: datetime) -> bool:
    """Whether it was disabled. Either way it is told at once: how it answered before says nothing now."""
    _forget_health(endpoint, actor, now)
    if endpoint.status == EndpointStatus.ACTIVE:
        return False
    settling.settle(endpoint, now)  # what came in last, while it was disabled
    endpoint.status, endpoint.disabled_reason = EndpointStatus.ACTIVE, ""
    acts.note(endpoint.id, Act.ENABLED, actor=actor, at=now)
    return True


def _forget_health(endpoint: Endpoint, actor: str, now: datetime) -> None:
    health, _ = Health.objects.select_for_update(no_key=True).get_or_create(endpoint=endpoint)
    Health(
        endpoint=endpoint,
        forgotten_at=now,
        verified_at=health.verified_at,
        # Otherwise each change would give an unverified endpoint an attempt before its time.
        attempted_at=health.attempted_at,
    ).save(force_update=True)
    if health.paused_at is not None:
        acts.note(endpoint.id, Act.RESUMED, actor=actor, at=now)


def _each_once(events: list[str]) -> list[str]:
    return list(dict.fromkeys(events))


def _usable(secret: str | None) -> str:
    if secret is None:
        return signing.new_secret()
    try:
        signing.key_of(secret)
    except signing.BadSecret as reason:
        raise InvalidSecret(str(reason), param="secret") from None
    return secret
