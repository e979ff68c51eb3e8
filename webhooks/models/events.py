"""Events and their feed."""

from enum import StrEnum

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from core.database import triggers
from core.database.columns import CausedRow, KeyedRow, PublicId, PublicIdKey, check
from merchants.models import Merchant
from webhooks import bodies


class EventType(StrEnum):
    """What a webhook can subscribe to; `<resource>.<state>`."""

    PAYMENT_SUCCEEDED = "payment.succeeded"
    PAYMENT_FAILED = "payment.failed"
    PAYMENT_PENDING = "payment.pending"
    PAYMENT_FEE_KNOWN = "payment.fee_known"
    PAYMENT_HOLD_LIFTED = "payment.hold_lifted"
    PAYMENT_EXCEPTION = "payment.exception"
    PAYMENT_EXCEPTION_RESOLVED = "payment.exception_resolved"
    WITHDRAWAL_PROCESSED = "withdrawal.processed"
    WITHDRAWAL_SUCCEEDED = "withdrawal.succeeded"
    WITHDRAWAL_FAILED = "withdrawal.failed"
    WITHDRAWAL_PENDING = "withdrawal.pending"
    REFUND_COMPLETED = "refund.completed"
    REFUND_FAILED = "refund.failed"
    SETTLEMENT_ARRIVED = "settlement.arrived"


class StaffEventType(StrEnum):
    """What a destination of the operator can subscribe to. Merchants never see these."""

    APPROVAL_REQUESTED = "approval.requested"
    EXCEPTION_OPENED = "exception.opened"
    ENDPOINT_PAUSED = "endpoint.paused"
    BACKUP_LATE = "backup.late"
    JOB_FAILED = "job.failed"


# The event type of probes and tests. No endpoint can subscribe to it.
PING = "webhook.ping"
# The same of messages that test a destination.
DESTINATION_PING = "destination.ping"


class Event(CausedRow):
    """An event for a merchant, or without one for the operator. Attempts send the bytes of `body`."""

    id = PublicIdKey()
    # Without a constraint, whose check writes a lock: the payment or the endpoint that it is about has one.
    merchant = models.ForeignKey(
        Merchant, on_delete=models.PROTECT, null=True, related_name="+", db_index=False, db_constraint=False
    )
    type = models.CharField(max_length=40)
    subject_id = PublicId()  # the payment, refund, withdrawal or exception
    packed_body = models.BinaryField(db_column="body")
    created_at = models.DateTimeField()
    # Its place in a trace, for operators.
    traceparent = models.CharField(max_length=55, null=True, editable=False)  # noqa: DJ001 (null: traces are off)

    class Meta:
        indexes = [
            # The list, of all types or of one (`is_merged`), and what a replay looks at.
            models.Index(fields=["merchant", "type", "created_at"], name="event_filtered"),
            models.Index(fields=["subject_id"], name="event_of_subject"),
        ]
        constraints = [
            check(
                "event_of_merchant_or_for_staff",
                Q(merchant__isnull=False) | Q(type__in=[*StaffEventType, DESTINATION_PING]),
            )
        ]
        triggers = [triggers.append_only("an event is never changed")]

    def __str__(self) -> str:
        return f"{self.type} {self.id}"

    @property
    def body(self) -> bytes:
        return bodies.unpack(bytes(self.packed_body), self.id + self.subject_id)


class UnnumberedEvent(KeyedRow):
    """An event without a sequence. A trigger adds it in the commit of the event.

    `id` is the order of the inserts. A trigger numbers each row that is deleted (`webhooks/sql/feed.sql`).
    """

    # Without foreign keys: each check would lock the row of the event, which costs more than the rest.
    pk = models.CompositePrimaryKey("merchant_id", "id")
    merchant_id = PublicId()
    id = models.BigIntegerField()
    event_id = PublicId()

    class Meta(KeyedRow.Meta):
        triggers = [triggers.WrittenByTriggers("only triggers number events")]


# So many ids make less than 2 kB, above which PostgreSQL would store them outside of the row.
MAX_BLOCK_EVENTS = 50


class FeedBlock(KeyedRow):
    """Events of a merchant that follow each other in its feed: the first has `first_sequence`, and so on.

    Sequences are 1, 2, 3 and so on, in the order of numbering. A row for each event would cost five times as
    much. The ids of a block begin with the same 8 characters, which is the same minute: so the block of an
    event is among the few of that minute (`webhooks.feed.SEQUENCES`).
    """

    pk = models.CompositePrimaryKey("merchant_id", "first_sequence")
    merchant_id = PublicId()
    first_sequence = models.BigIntegerField()
    last_event_id = PublicId()  # the largest id of the block
    event_ids = ArrayField(PublicId())

    class Meta(KeyedRow.Meta):
        constraints = [
            models.UniqueConstraint(fields=["merchant_id", "last_event_id"], name="feedblock_of_event"),
            check("feedblock_sane", Q(first_sequence__gte=1, event_ids__len__range=(1, MAX_BLOCK_EVENTS))),
        ]
        triggers = [
            triggers.WrittenByTriggers("only triggers number events"),
            triggers.append_only("the sequence of an event never changes"),
        ]
