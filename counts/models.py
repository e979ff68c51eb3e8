"""Counters behind the exact totals of long lists."""

from django.db import models
from django.db.models import Q

from core.database import triggers
from core.database.columns import KeyedRow, PublicId, check, known

ONLY_TRIGGERS = "only triggers change the counts"
ALL_OPERATIONS = triggers.INSERT | triggers.UPDATE | triggers.DELETE | triggers.TRUNCATE


class CountBucket(models.TextChoices):
    """Lengths of buckets, in UTC. Each divides the one before exactly."""

    MONTH = "month"
    DAY = "day"
    HOUR = "hour"
    MINUTE = "minute"


class ListCount(KeyedRow):
    """Rows of one list of an owner, and of one kind, created in one bucket.

    It lacks the rows of open periods, and count deltas. The kind is what the list is filtered by, such as
    `succeeded` for payments.
    """

    list = models.CharField(max_length=12)
    owner_id = PublicId()  # Whose list: a merchant, a webhook, or all merchants: `live` or `test`.
    kind = models.CharField(max_length=40)
    bucket = models.CharField(max_length=6, choices=CountBucket.choices)
    starts_at = models.DateTimeField()
    count = models.BigIntegerField()
    amount = models.BigIntegerField(default=0, db_default=0)  # satang of these rows

    class Meta(KeyedRow.Meta):
        triggers = [triggers.WrittenByTriggers(ONLY_TRIGGERS, ALL_OPERATIONS)]
        indexes = [
            models.Index(
                fields=["list", "bucket", "starts_at"],
                condition=Q(
                    bucket__in=[CountBucket.DAY, CountBucket.HOUR], list__in=["payments", "transactions"]
                ),
                name="listcount_of_all_owners",
            )
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["owner_id", "list", "bucket", "starts_at", "kind"], name="listcount_once"
            ),
            known("bucket", CountBucket, name="listcount_bucket_known"),
        ]


class CountDelta(KeyedRow):
    """A change of the rows of one list, kind and period that is not in a list count yet.

    A trigger appends it: for each period that closes, and in the commit of each change from the announcement
    on. Another trigger adds deleted deltas to the counts.
    """

    list = models.CharField(max_length=12)
    owner_id = PublicId()
    kind = models.CharField(max_length=40)
    period = models.DateTimeField()  # the start of the period in which the rows were created
    delta = models.BigIntegerField()
    amount = models.BigIntegerField(default=0, db_default=0)  # the change in satang

    class Meta(KeyedRow.Meta):
        # A trigger adds deleted rows to the counts.
        triggers = [triggers.WrittenByTriggers(ONLY_TRIGGERS)]
        indexes = [models.Index(fields=["owner_id", "list"], name="countdelta_of_list")]


class OpenPeriod(KeyedRow):
    """An owner has rows of this period, which are read one by one until the period closes.

    A trigger adds it in the commit of the first row. Commits at the same time may each add one.
    """

    period = models.DateTimeField()  # Its start. It lasts five seconds.
    owner_id = PublicId()

    class Meta(KeyedRow.Meta):
        triggers = [triggers.WrittenByTriggers(ONLY_TRIGGERS, ALL_OPERATIONS)]
        indexes = [models.Index(fields=["period", "owner_id"], name="openperiod_of_owner")]


class CountClock(KeyedRow):
    """Until when periods are closed. It has one row, and each UPDATE is one step (`counts_step`).

    Rows created before `closed` are in list counts and deltas. Writers append a delta for rows created before
    `announced`.
    """

    id = models.SmallIntegerField(primary_key=True, default=1)
    closed = models.DateTimeField()
    announced = models.DateTimeField()
    # Numbered after the announcement. When all up to it have ended, nobody missed it.
    marked_by = models.BigIntegerField(null=True)
    target = models.DateTimeField(null=True)  # until when the caller of the last step would close

    class Meta(KeyedRow.Meta):
        triggers = [triggers.keep_rows("there is one clock of the counts")]
        constraints = [check("countclock_is_one", Q(id=1))]
