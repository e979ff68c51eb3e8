"""Deliveries and their attempts. PostgreSQL is the queue."""

from django.db import models
from django.db.models import Q

from core.database.columns import CausedRow, KeyedRow, PublicId, PublicIdKey, known
from webhooks.models.endpoints import Endpoint
from webhooks.models.events import Event


class DeliveryState(models.TextChoices):
    PENDING = "pending"  # waits for due_at, or a worker posts it: `DeliveryLease`
    SUCCEEDED = "succeeded"
    FAILED = "failed"  # after the last attempt, or its URL is blocked, or its endpoint is deleted
    HELD = "held"  # its endpoint is disabled; a replay sends it


class DeliveryTrigger(models.TextChoices):
    AUTO = "auto"  # by an event, with the retry schedule
    MANUAL = "manual"  # requested by a merchant, with one attempt


class Delivery(CausedRow):
    """One event for one endpoint. A lost attempt counts, so a delivery that kills workers ends too."""

    id = PublicIdKey()
    # Without constraints, whose checks write locks: events and endpoints are never deleted, and the audit
    # looks for both.
    event = models.ForeignKey(
        Event, on_delete=models.PROTECT, related_name="deliveries", db_index=False, db_constraint=False
    )
    endpoint = models.ForeignKey(
        Endpoint, on_delete=models.PROTECT, related_name="deliveries", db_index=False, db_constraint=False
    )
    event_type = models.CharField(max_length=40)  # of the event
    state = models.CharField(max_length=9, choices=DeliveryState.choices, default=DeliveryState.PENDING)
    manual_number = models.IntegerField(default=0)  # 0: the scheduled delivery; n: the n-th manual delivery
    attempt_count = models.SmallIntegerField(default=0)
    due_at = models.DateTimeField()
    created_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True)
    requested_at = models.DateTimeField(null=True)  # when `actor` requested the last redelivery or replay

    class Meta:
        verbose_name, verbose_name_plural = "delivery", "deliveries"
        permissions = [("resend_delivery", "Can send events again")]
        indexes = [
            models.Index(fields=["endpoint", "due_at"], condition=Q(state="pending"), name="delivery_due"),
            models.Index(
                fields=["endpoint", "due_at"],
                condition=Q(state="pending", manual_number__gt=0),
                name="delivery_due_manual",
            ),
            models.Index(fields=["endpoint", "due_at"], condition=Q(state="held"), name="delivery_held"),
            models.Index(fields=["endpoint", "created_at"], name="delivery_newest_first"),
            models.Index(
                fields=["endpoint", "event_type", "state", "created_at"],
                name="delivery_filtered",
            ),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["event", "endpoint", "manual_number"], name="delivery_once_per_endpoint"
            ),
            known("state", DeliveryState, name="delivery_state_known"),
        ]

    @property
    def trigger(self) -> DeliveryTrigger:
        return DeliveryTrigger.MANUAL if self.manual_number else DeliveryTrigger.AUTO


class DeliveryLease(KeyedRow):
    """A pending delivery that a worker owns until `lease_until`. Its result deletes it, or `reclaim_expired`.

    In a table of its own, because a change of a delivery writes to all of its indexes.
    """

    # Without foreign keys, because each check writes a lock. A claim locks the delivery.
    pk = models.CompositePrimaryKey("endpoint_id", "delivery_id")
    endpoint_id = PublicId()
    delivery_id = PublicId()
    lease_id = models.UUIDField()
    lease_until = models.DateTimeField()


class DeliveryAttempt(models.Model):
    """One post and its result. `error` is a class such as `timeout`, never the text of an exception."""

    delivery = models.ForeignKey(Delivery, on_delete=models.PROTECT, related_name="attempt_set")
    number = models.SmallIntegerField()
    trigger = models.CharField(max_length=6, choices=DeliveryTrigger.choices, default=DeliveryTrigger.AUTO)
    started_at = models.DateTimeField()
    duration_ms = models.IntegerField(null=True)
    status = models.SmallIntegerField(null=True)
    error = models.CharField(max_length=20, blank=True, default="")
    peer = models.CharField(max_length=45, blank=True, default="")
    excerpt = models.TextField(blank=True, default="")
    # Id of the task that posted it.
    request_id = models.CharField(max_length=64, blank=True, default="", db_default="")

    def __str__(self) -> str:
        return f"{self.delivery_id} #{self.number}"
