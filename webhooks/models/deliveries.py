"""What happened, who is to be told of it, and every attempt to tell. PostgreSQL is the queue."""

from typing import Any

from django.db import models
from django.db.models import Q

from core.columns import PublicId, PublicIdKey
from merchants.models import Merchant
from webhooks.models.endpoints import Endpoint


class EventQuerySet(models.QuerySet["Event"]):
    def of(self, merchant: Merchant) -> "EventQuerySet":
        return self.filter(merchant=merchant)


class Event(models.Model):
    """Something happened. `body` is serialised once, here; every attempt sends these bytes."""

    id = PublicIdKey()
    merchant = models.ForeignKey(Merchant, on_delete=models.PROTECT, related_name="+", db_index=False)
    type = models.CharField(max_length=40)
    subject_id = PublicId(help_text="The payment, refund or withdrawal it is about.")
    body = models.BinaryField()
    actor = models.CharField(max_length=160, blank=True, default="", help_text="Who caused it.")
    request_id = models.CharField(max_length=64, blank=True, default="")
    created_at = models.DateTimeField()

    objects: Any = EventQuerySet.as_manager()

    class Meta:
        indexes = [
            models.Index(fields=["merchant", "-created_at", "-id"], name="event_newest_first"),
            models.Index(fields=["subject_id"], name="event_of_subject"),
        ]

    def __str__(self) -> str:
        return f"{self.type} {self.id}"


class DeliveryState(models.TextChoices):
    PENDING = "pending"  # waits for due_at
    LEASED = "leased"  # a worker has it until lease_until
    SUCCEEDED = "succeeded"
    FAILED = "failed"  # out of attempts, or refused for good
    HELD = "held"  # its endpoint is disabled; kept for replay


class Trigger(models.TextChoices):
    AUTO = "auto"  # an event happened: the schedule tries again
    MANUAL = "manual"  # somebody asked: one attempt


class Delivery(models.Model):
    """One event for one endpoint. `attempts` is spent at claim, or a deadly payload could loop for ever."""

    id = PublicIdKey()
    event = models.ForeignKey(Event, on_delete=models.PROTECT, related_name="deliveries", db_index=False)
    endpoint = models.ForeignKey(
        Endpoint, on_delete=models.PROTECT, related_name="deliveries", db_index=False
    )
    state = models.CharField(max_length=9, choices=DeliveryState.choices, default=DeliveryState.PENDING)
    resend = models.IntegerField(
        default=0, help_text="0 is the delivery by the schedule; n the n-th that was asked for by hand."
    )
    attempts = models.SmallIntegerField(default=0)
    due_at = models.DateTimeField()
    lease_id = models.UUIDField(null=True)
    lease_until = models.DateTimeField(null=True)
    created_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True)
    asked_at = models.DateTimeField(
        null=True, help_text="When somebody asked for it last, beside the event: a resend or a replay."
    )
    asked_by = models.CharField(
        max_length=160, blank=True, default="", db_default="", help_text="As core.origin has it."
    )
    asked_request_id = models.CharField(max_length=64, blank=True, default="", db_default="")

    class Meta:
        verbose_name, verbose_name_plural = "delivery", "deliveries"
        indexes = [
            models.Index(fields=["endpoint", "due_at"], condition=Q(state="pending"), name="delivery_due"),
            models.Index(
                fields=["endpoint", "due_at"],
                condition=Q(state="pending", resend__gt=0),
                name="delivery_due_by_hand",
            ),
            models.Index(fields=["endpoint", "due_at"], condition=Q(state="held"), name="delivery_held"),
            models.Index(
                fields=["endpoint", "lease_until"], condition=Q(state="leased"), name="delivery_leased"
            ),
            models.Index(fields=["endpoint", "-created_at", "-id"], name="delivery_newest_first"),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["event", "endpoint", "resend"], name="delivery_once_per_endpoint"
            ),
            models.CheckConstraint(condition=Q(state__in=DeliveryState.values), name="delivery_state_known"),
            models.CheckConstraint(
                condition=Q(state="leased", lease_id__isnull=False, lease_until__isnull=False)
                | ~Q(state="leased") & Q(lease_id__isnull=True, lease_until__isnull=True),
                name="delivery_lease_iff_leased",
            ),
        ]

    def __str__(self) -> str:
        return str(self.id)

    @property
    def trigger(self) -> Trigger:
        return Trigger.MANUAL if self.resend else Trigger.AUTO


class Attempt(models.Model):
    """One post and what came back. `error` is a class such as `timeout`, never an exception's text."""

    delivery = models.ForeignKey(Delivery, on_delete=models.PROTECT, related_name="attempt_set")
    number = models.SmallIntegerField()
    trigger = models.CharField(max_length=6, choices=Trigger.choices, default=Trigger.AUTO)
    started_at = models.DateTimeField(db_index=True)
    duration_ms = models.IntegerField(null=True)
    status = models.SmallIntegerField(null=True)
    error = models.CharField(max_length=20, blank=True, default="")
    peer = models.CharField(max_length=45, blank=True, default="")
    excerpt = models.TextField(blank=True, default="")
    request_id = models.CharField(
        max_length=64, blank=True, default="", db_default="", help_text="Of the task that posted it."
    )

    def __str__(self) -> str:
        return f"{self.delivery_id} #{self.number}"


class Counted(models.TextChoices):
    ATTEMPT = "attempt"  # `outcome` is succeeded or the attempt's error
    BELL = "bell"  # rings that Redis did not take


class Tally(models.Model):
    """How often something ended so, ever; `webhooks.tallies` counts. So nobody needs to count history.

    `within_ms` is one of `tallies.BOUNDS_MS`, or 0 for what has no duration.
    """

    what = models.CharField(max_length=7, choices=Counted.choices)
    outcome = models.CharField(max_length=20)
    within_ms = models.IntegerField(default=0)
    count = models.BigIntegerField()
    total_ms = models.BigIntegerField()

    class Meta:
        verbose_name_plural = "tallies"
        constraints = [
            models.UniqueConstraint(fields=["what", "outcome", "within_ms"], name="tally_once_per_outcome")
        ]

    def __str__(self) -> str:
        return f"{self.what} {self.outcome} within {self.within_ms} ms"
