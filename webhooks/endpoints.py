"""Change endpoints, which merchants call webhooks, and update their deliveries."""

from collections.abc import Iterable
from copy import copy
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet

from core import ids, vault
from core.database import rows
from core.http import received
from core.observing import security_log
from core.observing.security_log import SecurityEvent
from merchants.models import Merchant
from webhooks import probes, signing
from webhooks.errors import DestinationNotFound, InvalidSecret, TooManyWebhooks, WebhookNotFound
from webhooks.models import (
    Delivery,
    DeliveryLease,
    DeliveryState,
    DisabledReason,
    Endpoint,
    EndpointAction,
    EndpointActionType,
    EndpointHealth,
    EndpointStatus,
    EndpointType,
)

# How long a secret also signs after a rotation, and how many do so at a time: each is a signature more.
SECRET_OVERLAP, MAX_REPLACED_SECRETS = timedelta(hours=24), 5
SWEEP_ENDPOINTS = 100
SWEEP_DELIVERIES = 5000


def prepare(
    *, merchant: Merchant, url: str, events: list[str], now: datetime, secret: str | None = None
) -> Endpoint:
    """Build a new endpoint and probe its URL; call this outside any transaction, then `store`.

    Repeated event types count once. A merchant at its limit gets no probe. Raises InvalidSecret,
    TooManyWebhooks, InvalidUrl, RateLimitExceeded, ServiceUnavailable.
    """
    _check_webhook_limit(merchant)
    endpoint_id = ids.new("wh_", now)
    endpoint = Endpoint(
        id=endpoint_id,
        merchant=merchant,
        url=url,
        events=list(dict.fromkeys(events)),
        secret_sealed=vault.seal(_checked_secret(secret), context=endpoint_id),
        created_at=now,
        updated_at=now,
    )
    endpoint.last_ping_status = probes.probe(endpoint, now=now)
    EndpointHealth(endpoint=endpoint, verified_at=_verified_at(endpoint.last_ping_status, now))
    return endpoint


@transaction.atomic
def store(endpoint: Endpoint) -> None:
    """Insert an endpoint of `prepare`. Creations of a merchant take turns. Raises TooManyWebhooks."""
    Merchant.objects.select_for_update(no_key=True).get(pk=endpoint.merchant_id)
    _check_webhook_limit(endpoint.merchant)
    created = EndpointAction.new(endpoint.id, EndpointActionType.CREATED, now=endpoint.created_at)
    rows.insert_together([endpoint, endpoint.health, created])


def _check_webhook_limit(merchant: Merchant | None) -> None:
    limit = settings.WEBHOOKS_PER_MERCHANT
    if Endpoint.objects.of(merchant).webhooks().count() >= limit:
        raise TooManyWebhooks(limit=limit)


def find(merchant: Merchant, webhook_id: str) -> Endpoint:
    """Find a webhook of the merchant with its health. Raises WebhookNotFound."""
    known = Endpoint.objects.of(merchant).webhooks().select_related("health")
    return ids.find(webhook_id, "wh_", known, WebhookNotFound)


def lock(endpoint: Endpoint) -> Endpoint:
    """Read a webhook or a destination anew, and lock it until the transaction ends.

    Raises WebhookNotFound or DestinationNotFound if somebody has deleted it.
    """
    locked = Endpoint.objects.locked(endpoint.id)
    if locked.deleted_at is not None:
        raise (WebhookNotFound if locked.type == EndpointType.WEBHOOK else DestinationNotFound)(id=locked.id)
    return locked


def move(webhook: Endpoint, url: str, *, now: datetime) -> Endpoint | None:
    """The webhook at another URL, which is probed: call this outside any transaction, then `update`.

    None if it is there. Raises InvalidUrl, RateLimitExceeded, ServiceUnavailable.
    """
    if url == webhook.url:
        return None
    moved = copy(webhook)
    moved.url = url
    moved.last_ping_status = probes.probe(moved, now=now)
    return moved


@transaction.atomic
def update(
    webhook: Endpoint,
    *,
    now: datetime,
    moved: Endpoint | None = None,
    events: list[str] | None = None,
    status: str | None = None,
) -> Endpoint:
    """Change what is given. moved: by `move`.

    Enabling sends nothing again: held deliveries stay held until a replay. Raises WebhookNotFound.
    """
    endpoint = lock(webhook)
    if moved is not None:
        change = f"{endpoint.url} \N{RIGHTWARDS ARROW} {moved.url}"
        EndpointAction.record(endpoint.id, EndpointActionType.URL_CHANGED, now=now, detail=change)
        endpoint.url, endpoint.last_ping_status = moved.url, moved.last_ping_status
        # Another party may own the new URL.
        reset_health(endpoint, now, verified_at=_verified_at(moved.last_ping_status, now))
    set_events(endpoint, events or endpoint.events, now)
    change_status(endpoint, status, now)
    return endpoint


def set_events(endpoint: Endpoint, events: Iterable[str], now: datetime) -> None:
    """Repeated types count once. The caller has locked the endpoint, and saves it."""
    before, endpoint.events = endpoint.events, list(dict.fromkeys(events))
    if endpoint.events != before:
        detail = "before: " + ", ".join(before)
        EndpointAction.record(endpoint.id, EndpointActionType.EVENTS_CHANGED, now=now, detail=detail)


def change_status(endpoint: Endpoint, status: str | None, now: datetime) -> None:
    """Save an endpoint that its merchant changed, and disable or enable it. The caller has locked it."""
    if status == EndpointStatus.DISABLED:
        _disable(endpoint, DisabledReason.MERCHANT, now)
    elif status == EndpointStatus.ACTIVE:
        _enable(endpoint, now)
    endpoint.updated_at = now
    endpoint.save()
    hold_or_fail_deliveries(endpoint, now)


def reveal_secret(webhook: Endpoint) -> str:
    """Return the secret that signs now, and log this."""
    merchant_id = webhook.merchant_id
    security_log.record(SecurityEvent.SECRET_REVEALED, subject=webhook.id, merchant_id=merchant_id)
    return webhook.secret


@transaction.atomic
def rotate_secret(webhook: Endpoint, *, now: datetime, secret: str | None = None) -> Endpoint:
    """Sign with `secret`, or with a new one, from now on. Each replaced one also signs for its 24 hours.

    After five rotations within 24 hours the oldest ends early. The secret that signs already changes nothing.
    Raises WebhookNotFound, InvalidSecret.
    """
    endpoint, new_secret = lock(webhook), _checked_secret(secret)
    if new_secret != endpoint.secret:
        replaced = [(endpoint.secret, now + SECRET_OVERLAP)]
        replaced += [each for each in endpoint.replaced_secrets if each[1] > now and each[0] != new_secret]
        endpoint.set_secrets(new_secret, replaced[:MAX_REPLACED_SECRETS])
        endpoint.updated_at = now
        endpoint.save()
        EndpointAction.record(endpoint.id, EndpointActionType.SECRET_ROTATED, now=now)
        security_log.record_on_commit(
            SecurityEvent.SECRET_ROTATED, subject=endpoint.id, merchant_id=endpoint.merchant_id
        )
    return endpoint


@transaction.atomic
def delete(endpoint: Endpoint, *, now: datetime) -> None:
    """Delete an endpoint, and whom a destination reached. Its deliveries stay. Raises as `lock`."""
    endpoint = lock(endpoint)
    endpoint.deleted_at = endpoint.updated_at = now
    if endpoint.type != EndpointType.WEBHOOK:
        endpoint.recipient = endpoint.secret_sealed = ""
    endpoint.save()
    EndpointAction.record(endpoint.id, EndpointActionType.DELETED, now=now)
    hold_or_fail_deliveries(endpoint, now)


@transaction.atomic
def disable(
    *, endpoint_id: str, reason: DisabledReason, now: datetime, attempt_started_at: datetime | None = None
) -> None:
    """Disable an endpoint and hold its deliveries.

    A repeat holds the deliveries that workers have returned since. Nothing changes if the attempt that is the
    reason started before the last change of URL or enabling.
    """
    endpoint = Endpoint.objects.locked(endpoint_id)
    if (
        attempt_started_at is not None
        and EndpointHealth.objects.filter(pk=endpoint_id, reset_at__gt=attempt_started_at).exists()
    ):
        return
    if endpoint.deleted_at is None:
        _disable(endpoint, reason, now)
    hold_or_fail_deliveries(endpoint, now)


@transaction.atomic
def enable(*, endpoint_id: str, now: datetime) -> None:
    """Enable an endpoint and reset its health. Held deliveries stay held until a replay."""
    endpoint = Endpoint.objects.locked(endpoint_id)
    if endpoint.deleted_at is None:
        _enable(endpoint, now)


@transaction.atomic
def skip_pause(*, endpoint_id: str, now: datetime) -> None:
    """End a pause now, so that one delivery is sent at once. Without a pause nothing changes."""
    active = Endpoint.objects.filter(status=EndpointStatus.ACTIVE, deleted_at=None)
    if EndpointHealth.objects.filter(pk=endpoint_id, endpoint__in=active, paused_until__gt=now).update(
        paused_until=now
    ):
        EndpointAction.record(endpoint_id, EndpointActionType.PAUSE_SKIPPED, now=now)


def _verified_at(ping_status: int | None, now: datetime) -> datetime | None:
    return now if ping_status is not None and ping_status // 100 == 2 else None


def _disable(endpoint: Endpoint, reason: DisabledReason, now: datetime) -> None:
    if endpoint.status == EndpointStatus.ACTIVE:
        _save_status(endpoint, EndpointStatus.DISABLED, now, reason.value)


def _enable(endpoint: Endpoint, now: datetime) -> None:
    reset_health(endpoint, now)
    if endpoint.status == EndpointStatus.DISABLED:
        hold_or_fail_deliveries(endpoint, now)  # events that arrived while it was disabled
        _save_status(endpoint, EndpointStatus.ACTIVE, now)


def _save_status(endpoint: Endpoint, status: EndpointStatus, now: datetime, reason: str = "") -> None:
    endpoint.status, endpoint.disabled_reason, endpoint.updated_at = status, reason, now
    endpoint.save(update_fields=["status", "disabled_reason", "updated_at"])
    done = EndpointActionType.ENABLED if status == EndpointStatus.ACTIVE else EndpointActionType.DISABLED
    EndpointAction.record(endpoint.id, done, now=now, detail=reason)


def reset_health(endpoint: Endpoint, now: datetime, **fields: Any) -> None:
    """Forget how it answered. The caller has locked it."""
    health = EndpointHealth.objects.select_for_update(no_key=True).get(endpoint=endpoint)
    # `attempted_at` is kept so that a change gives an unverified endpoint no early attempt.
    kept = {"verified_at": health.verified_at, "attempted_at": health.attempted_at}
    EndpointHealth(endpoint=endpoint, reset_at=now, **kept | fields).save(force_update=True)
    if health.paused_at is not None:
        EndpointAction.record(endpoint.id, EndpointActionType.RESUMED, now=now)


def _checked_secret(secret: str | None) -> str:
    if secret is None:
        return signing.new_secret()
    try:
        signing.key_bytes(secret)
    except signing.BadSecret as reason:
        shown = received.describe(secret, is_shown=False)
        raise InvalidSecret(param="secret", detail=str(reason), received=shown) from None
    return secret


def hold_or_fail_deliveries(endpoint: Endpoint, now: datetime) -> None:
    """Hold deliveries of a disabled endpoint for a replay; fail manual ones and those of a deleted endpoint.

    The caller holds the lock of the endpoint. One call handles 5,000 deliveries of each kind, so that a long
    backlog does not hold the lock for long. `sweep_inactive` handles the rest.
    """
    if endpoint.deleted_at is not None:
        for state in (DeliveryState.PENDING, DeliveryState.HELD):
            _some_deliveries(endpoint, state=state).update(state=DeliveryState.FAILED, finished_at=now)
    elif endpoint.status == EndpointStatus.DISABLED and endpoint.disabled_reason != DisabledReason.MOVED:
        manual = _some_deliveries(endpoint, state=DeliveryState.PENDING, manual_number__gt=0)
        manual.update(state=DeliveryState.FAILED, finished_at=now)
        scheduled = _some_deliveries(endpoint, state=DeliveryState.PENDING, manual_number=0)
        scheduled.update(state=DeliveryState.HELD)


def sweep_inactive(*, now: datetime) -> None:
    """Hold or fail deliveries that appeared, or came back from a worker, while their endpoint is inactive."""
    leased = DeliveryLease.objects.filter(endpoint_id=OuterRef("endpoint"), delivery_id=OuterRef("pk"))
    pending = Delivery.objects.filter(~Exists(leased), endpoint=OuterRef("pk"), state=DeliveryState.PENDING)
    held = Delivery.objects.filter(endpoint=OuterRef("pk"), state=DeliveryState.HELD)
    has_work = Exists(pending) | Q(deleted_at__isnull=False) & Exists(held)
    disabled = Q(status=EndpointStatus.DISABLED) & ~Q(disabled_reason=DisabledReason.MOVED)
    inactive = Endpoint.objects.filter(disabled | Q(deleted_at__isnull=False))
    found = inactive.filter(has_work).values_list("pk", flat=True)
    for endpoint_id in found[:SWEEP_ENDPOINTS]:
        with transaction.atomic():
            hold_or_fail_deliveries(Endpoint.objects.locked(endpoint_id), now)


def _some_deliveries(endpoint: Endpoint, **conditions: Any) -> "QuerySet[Delivery]":
    """Those that are longest due. A worker that has a lease records what becomes of its delivery."""
    leased = DeliveryLease.objects.filter(endpoint_id=endpoint.pk).values("delivery_id")
    mine = Delivery.objects.filter(endpoint=endpoint, **conditions).exclude(pk__in=leased)
    oldest = mine.order_by("due_at").select_for_update(skip_locked=True, no_key=True)[:SWEEP_DELIVERIES]
    # Under these locks no worker claims them. One may have done so just before: so look for leases again.
    return mine.filter(pk__in=list(oldest.values_list("pk", flat=True)))
