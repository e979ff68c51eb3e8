"""Who is told, how they answer, and what happened to them."""

from datetime import datetime
from typing import Any

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from core import vault
from core.columns import PublicIdKey
from merchants.models import Merchant


class EndpointStatus(models.TextChoices):
    ACTIVE = "active"
    DISABLED = "disabled"


class DisabledReason(models.TextChoices):
    MERCHANT = "merchant"  # by its merchant
    GONE = "gone"  # it answered 410
    FAILING = "failing"  # for days
    STAFF = "staff"


class EndpointQuerySet(models.QuerySet["Endpoint"]):
    def of(self, merchant: Merchant) -> "EndpointQuerySet":
        return self.filter(merchant=merchant, deleted_at=None)

    def locked(self, endpoint_id: str) -> "Endpoint":
        """The row under its lock: everybody locks it before its health and its deliveries."""
        return self.select_for_update(no_key=True).get(pk=endpoint_id)

    def silent(self) -> "EndpointQuerySet":
        """Those that are told nothing."""
        return self.filter(~Q(status=EndpointStatus.ACTIVE) | Q(deleted_at__isnull=False))


class Endpoint(models.Model):
    """A URL that a merchant registered. The secret is sealed; `previous_secret` also signs for a day."""

    id = PublicIdKey()
    merchant = models.ForeignKey(Merchant, on_delete=models.PROTECT, related_name="+", db_index=False)
    url = models.CharField(max_length=2048)
    events = ArrayField(models.CharField(max_length=40))
    secret_sealed = models.TextField(editable=False)
    previous_secret_sealed = models.TextField(null=True, editable=False)  # noqa: DJ001
    previous_secret_until = models.DateTimeField(null=True, editable=False)
    status = models.CharField(max_length=8, choices=EndpointStatus.choices, default=EndpointStatus.ACTIVE)
    disabled_reason = models.CharField(max_length=40, choices=DisabledReason.choices, blank=True, default="")
    last_ping_status = models.SmallIntegerField(null=True)
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()
    deleted_at = models.DateTimeField(null=True)

    objects: Any = EndpointQuerySet.as_manager()

    class Meta:
        indexes = [models.Index(fields=["merchant", "-created_at", "-id"], name="endpoint_newest_first")]
        constraints = [
            models.CheckConstraint(
                condition=Q(status__in=EndpointStatus.values), name="endpoint_status_known"
            )
        ]

    def __str__(self) -> str:
        return f"{self.id} {self.url}"

    @property
    def secret(self) -> str:
        return vault.open_sealed(self.secret_sealed, context=self.id)

    def secrets_at(self, now: datetime) -> list[str]:
        """Those that sign at `now`, the newest first."""
        until = self.previous_secret_until
        if self.previous_secret_sealed is None or until is None or until <= now:
            return [self.secret]
        return [self.secret, vault.open_sealed(self.previous_secret_sealed, context=self.id)]


class Condition(models.TextChoices):
    HEALTHY = "healthy"
    FAILING = "failing"
    PAUSED = "paused"


class Verification(models.TextChoices):
    VERIFIED = "verified"
    UNVERIFIED = "unverified"


class Health(models.Model):
    """How an endpoint answers lately; `webhooks.breaker` changes it.

    Unverified until its URL answers a signed request with 2xx: nobody proved yet that it wants our messages.
    Paused from `paused_at` on; from `paused_until` on it is tried with one delivery at a time.
    """

    endpoint = models.OneToOneField(
        Endpoint, on_delete=models.CASCADE, primary_key=True, related_name="health"
    )
    failures = models.IntegerField(default=0, help_text="In a row.")
    failing_since = models.DateTimeField(null=True)
    last_error = models.CharField(max_length=20, blank=True, default="")
    window_started_at = models.DateTimeField(null=True)
    window_attempts = models.IntegerField(default=0)
    window_failures = models.IntegerField(default=0)
    paused_at = models.DateTimeField(null=True)
    paused_until = models.DateTimeField(null=True)
    pause_seconds = models.FloatField(default=0)
    latency_ms = models.IntegerField(null=True, help_text="A moving average.")
    forgotten_at = models.DateTimeField(null=True, help_text="Attempts that began before do not count.")
    verified_at = models.DateTimeField(
        null=True, help_text="When its present URL first answered a signed request with 2xx."
    )
    attempted_at = models.DateTimeField(null=True, help_text="When the last attempt ended.")

    class Meta:
        verbose_name_plural = "health"
        constraints = [
            models.CheckConstraint(
                condition=Q(paused_at__isnull=True, paused_until__isnull=True, pause_seconds=0)
                | Q(paused_at__isnull=False, paused_until__isnull=False, pause_seconds__gt=0),
                name="health_pause_is_whole",
            )
        ]

    def __str__(self) -> str:
        return f"health of {self.endpoint_id}"

    @property
    def condition(self) -> Condition:
        if self.paused_until is not None:
            return Condition.PAUSED
        return Condition.FAILING if self.failures else Condition.HEALTHY

    @property
    def verification(self) -> Verification:
        return Verification.UNVERIFIED if self.verified_at is None else Verification.VERIFIED


class Act(models.TextChoices):
    CREATED = "created"
    URL_CHANGED = "url_changed"
    EVENTS_CHANGED = "events_changed"
    SECRET_RENEWED = "secret_renewed"  # noqa: S105
    DISABLED = "disabled"
    ENABLED = "enabled"
    PAUSED = "paused"  # pauses that follow because it fails on are not told
    TRIED = "tried"  # somebody did not wait for the end of a pause
    RESUMED = "resumed"
    REPLAYED = "replayed"
    VERIFIED = "verified"  # a delivery was the first request that its URL answered with 2xx
    DELETED = "deleted"


class EndpointAct(models.Model):
    """What happened to an endpoint. Written by `webhooks.acts`, never changed."""

    endpoint = models.ForeignKey(Endpoint, on_delete=models.PROTECT, related_name="acts", db_index=False)
    act = models.CharField(max_length=14, choices=Act.choices)
    detail = models.TextField(blank=True, default="", help_text="Why, or what was before. Never a secret.")
    actor = models.CharField(max_length=160, help_text="merchant, system or staff:<username>.")
    caused_by = models.CharField(
        max_length=160, blank=True, default="", db_default="", help_text="As core.origin has it."
    )
    request_id = models.CharField(max_length=64, blank=True, default="", db_default="")
    at = models.DateTimeField()

    class Meta:
        verbose_name = "act"
        indexes = [models.Index(fields=["endpoint", "-id"], name="act_newest_first")]

    def __str__(self) -> str:
        return f"{self.endpoint_id} {self.act}"
