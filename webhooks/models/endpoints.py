"""Where events and messages go: webhooks and destinations, their health, and what changed them."""

import json
from collections.abc import Sequence
from datetime import datetime

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from core import request_context, vault
from core.database import triggers
from core.database.columns import CausedRow, PublicIdKey, check, known
from core.database.state_machines import LockableRows
from merchants.models import Merchant


class EndpointStatus(models.TextChoices):
    ACTIVE = "active"
    DISABLED = "disabled"


class EndpointType(models.TextChoices):
    """How an endpoint gets messages: by https, or as a text for people."""

    WEBHOOK = "webhook", "Webhook"
    LINE = "line", "LINE"
    EMAIL = "email", "Email"


class Language(models.TextChoices):
    """Of texts for people."""

    TH = "th", "ไทย"
    EN = "en", "English"


class DisabledReason(models.TextChoices):
    MERCHANT = "merchant", "Its merchant disabled the webhook"
    GONE = "gone", "The webhook answered 410 Gone"
    FAILING = "failing", "The webhook had failed for days"
    STAFF = "staff", "Staff disabled the webhook"
    MOVED = "moved", "Its merchant has moved to another instance"


_TIME = "([01][0-9]|2[0-3]):[0-5][0-9]"
QUIET_HOURS = f"^{_TIME}-{_TIME}$"
# They begin when they end.
NO_HOURS = "^(.{5})-\\1$"
ReplacedSecret = tuple[str, datetime]
"""A secret, and when its signatures end."""


class EndpointQuerySet(LockableRows["Endpoint"]):
    def of(self, merchant: Merchant | None) -> "EndpointQuerySet":
        """Webhooks and destinations. None: those of the operator."""
        return self.filter(merchant=merchant, deleted_at=None)

    def webhooks(self) -> "EndpointQuerySet":
        return self.filter(type=EndpointType.WEBHOOK)

    def destinations(self) -> "EndpointQuerySet":
        return self.exclude(type=EndpointType.WEBHOOK)


class Endpoint(models.Model):
    """A URL that a merchant registered, or a destination: a LINE chat or an email address.

    Secrets are encrypted. Each replaced one also signs for 24 hours. The secret of a LINE chat is the token
    of the channel that writes to it; an email address has none. Without a merchant it is the operator's.
    """

    id = PublicIdKey()
    merchant = models.ForeignKey(
        Merchant, on_delete=models.PROTECT, null=True, related_name="+", db_index=False
    )
    type = models.CharField(
        max_length=7,
        choices=EndpointType.choices,
        default=EndpointType.WEBHOOK,
        db_default=EndpointType.WEBHOOK,
    )
    url = models.CharField(max_length=2048, blank=True, default="")
    # A LINE chat, or an email address. Empty once it is deleted.
    recipient = models.CharField(max_length=254, blank=True, default="", db_default="")
    language = models.CharField(max_length=2, choices=Language.choices, blank=True, default="", db_default="")
    # In Bangkok, such as 22:00-07:00.
    quiet_hours = models.CharField(max_length=11, blank=True, default="", db_default="")
    events = ArrayField(models.CharField(max_length=40))
    secret_sealed = models.TextField(blank=True, default="", editable=False)
    # With their ends, as JSON; the newest first.
    replaced_secrets_sealed = models.TextField(blank=True, default="", editable=False)
    status = models.CharField(max_length=8, choices=EndpointStatus.choices, default=EndpointStatus.ACTIVE)
    disabled_reason = models.CharField(max_length=40, choices=DisabledReason.choices, blank=True, default="")
    last_ping_status = models.SmallIntegerField(null=True)
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()
    deleted_at = models.DateTimeField(null=True)

    objects = EndpointQuerySet.as_manager()

    class Meta:
        permissions = [
            ("disable_endpoint", "Can disable endpoints"),
            ("enable_endpoint", "Can enable endpoints"),
            ("skip_pause", "Can skip the pause of endpoints"),
            ("replay_deliveries", "Can replay held deliveries"),
            ("manage_destinations", "Can add and delete destinations for staff"),
        ]
        indexes = [models.Index(fields=["merchant", "created_at", "id"], name="endpoint_newest_first")]
        constraints = [
            known("status", EndpointStatus, name="endpoint_status_known"),
            check(
                "endpoint_is_webhook_or_destination",
                Q(type="webhook", recipient="", language="", quiet_hours="", merchant__isnull=False)
                & Q(id__startswith="wh_")
                & ~Q(url="")
                & ~Q(secret_sealed="")
                | Q(type__in=["line", "email"], url="", language__in=Language.values)
                & Q(id__startswith="dst_")
                & (
                    Q(deleted_at__isnull=True, type="email", secret_sealed="") & ~Q(recipient="")
                    | Q(deleted_at__isnull=True, type="line") & ~Q(recipient="") & ~Q(secret_sealed="")
                    | Q(deleted_at__isnull=False, recipient="", secret_sealed="")
                ),
            ),
            check(
                "endpoint_quiet_hours",
                Q(quiet_hours="") | Q(quiet_hours__regex=QUIET_HOURS) & ~Q(quiet_hours__regex=NO_HOURS),
            ),
        ]
        triggers = [triggers.keep_rows("an endpoint is marked as deleted, and its row stays")]

    def __str__(self) -> str:
        return f"{self.id} {self.address}".rstrip()

    @property
    def address(self) -> str:
        """The URL, the LINE chat or the email address. Empty of a destination that is deleted."""
        return self.url or self.recipient

    @property
    def secret(self) -> str:
        return vault.open_sealed(self.secret_sealed, context=self.id)

    def signing_secrets(self, now: datetime) -> list[str]:
        """Return the secrets that sign at `now`, the newest first."""
        return [self.secret, *(secret for secret, until in self.replaced_secrets if until > now)]

    @property
    def replaced_secrets(self) -> list[ReplacedSecret]:
        """The newest first. Some may have ended."""
        if not self.replaced_secrets_sealed:
            return []
        found = json.loads(vault.open_sealed(self.replaced_secrets_sealed, context=self.id))
        return [(secret, datetime.fromisoformat(until)) for secret, until in found]

    def set_secrets(self, secret: str, replaced: Sequence[ReplacedSecret]) -> None:
        """Set all secrets without saving them. replaced: the newest first."""
        found = json.dumps([(each, until.isoformat()) for each, until in replaced])
        self.secret_sealed = vault.seal(secret, context=self.id)
        self.replaced_secrets_sealed = vault.seal(found, context=self.id)


class HealthState(models.TextChoices):
    HEALTHY = "healthy"
    FAILING = "failing"
    PAUSED = "paused"


class VerificationStatus(models.TextChoices):
    VERIFIED = "verified"
    UNVERIFIED = "unverified"


class EndpointHealth(models.Model):
    """How an endpoint answered lately. `webhooks.delivery.circuit_breaker` updates it.

    An endpoint is unverified until its URL answers a signed request with 2xx, which proves that its owner
    wants our messages. It is paused from `paused_at` on. From `paused_until` on it gets one delivery at a
    time.
    """

    endpoint = models.OneToOneField(
        Endpoint, on_delete=models.CASCADE, primary_key=True, related_name="health"
    )
    consecutive_failures = models.IntegerField(default=0)
    failing_since = models.DateTimeField(null=True)
    last_error = models.CharField(max_length=20, blank=True, default="")
    window_started_at = models.DateTimeField(null=True)
    window_attempts = models.IntegerField(default=0)
    window_failures = models.IntegerField(default=0)
    paused_at = models.DateTimeField(null=True)
    paused_until = models.DateTimeField(null=True)
    pause_seconds = models.FloatField(default=0)
    latency_ms = models.IntegerField(null=True)  # a moving average
    reset_at = models.DateTimeField(null=True)  # attempts that started before do not count
    # When the current URL first answered a signed request with 2xx.
    verified_at = models.DateTimeField(null=True)
    attempted_at = models.DateTimeField(null=True)  # when the last attempt ended

    class Meta:
        verbose_name_plural = "endpoint health"
        constraints = [
            check(
                "endpoint_health_pause_complete",
                Q(paused_at__isnull=True, paused_until__isnull=True, pause_seconds=0)
                | Q(paused_at__isnull=False, paused_until__isnull=False, pause_seconds__gt=0),
            )
        ]

    def __str__(self) -> str:
        return f"health of {self.endpoint_id}"

    @property
    def state(self) -> HealthState:
        if self.paused_until is not None:
            return HealthState.PAUSED
        return HealthState.FAILING if self.consecutive_failures else HealthState.HEALTHY

    @property
    def verification(self) -> VerificationStatus:
        return VerificationStatus.UNVERIFIED if self.verified_at is None else VerificationStatus.VERIFIED


class EndpointActionType(models.TextChoices):
    CREATED = "created"
    URL_CHANGED = "url_changed"
    EVENTS_CHANGED = "events_changed"
    SECRET_ROTATED = "secret_rotated"  # noqa: S105
    DISABLED = "disabled"
    ENABLED = "enabled"
    PAUSED = "paused"  # recorded once for several pauses in a row
    PAUSE_SKIPPED = "pause_skipped"  # by staff
    RESUMED = "resumed"
    REPLAYED = "replayed"
    CHANGED = "changed"  # the language, quiet hours, chat or address of a destination
    VERIFIED = "verified"  # its URL answered a delivery with 2xx for the first time
    DELETED = "deleted"


class EndpointAction(CausedRow):
    """One change of an endpoint and who made it, recorded in the same commit. Append-only."""

    endpoint = models.ForeignKey(Endpoint, on_delete=models.PROTECT, related_name="actions", db_index=False)
    type = models.CharField(max_length=14, choices=EndpointActionType.choices)
    detail = models.TextField(blank=True, default="")  # The reason, or the value before. Never a secret.
    created_at = models.DateTimeField()

    class Meta:
        triggers = [triggers.append_only("endpoint actions are never changed")]
        verbose_name = "endpoint action"
        indexes = [models.Index(fields=["endpoint", "id"], name="endpoint_action_newest_first")]

    def __str__(self) -> str:
        return f"{self.endpoint_id} {self.type}"

    @classmethod
    def new(
        cls, endpoint_id: str, action_type: EndpointActionType, *, now: datetime, detail: str = ""
    ) -> "EndpointAction":
        """Build an action of the current actor without storing it."""
        return cls(
            endpoint_id=endpoint_id,
            type=action_type,
            detail=detail,
            created_at=now,
            **request_context.columns(),
        )

    @classmethod
    def record(
        cls, endpoint_id: str, action_type: EndpointActionType, *, now: datetime, detail: str = ""
    ) -> None:
        """Record an action of the current actor in the caller's transaction."""
        cls.new(endpoint_id, action_type, now=now, detail=detail).save(force_insert=True)
