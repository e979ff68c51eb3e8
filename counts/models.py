"""Counters behind the exact totals of long lists."""

from django.db import models
from django.db.models import Q

from core.database.columns import PublicId


class CountBucket(models.TextChoices):
    """Lengths of buckets, in UTC. Each divides the one before exactly."""

    MONTH = "month"
    DAY = "day"
    HOUR = "hour"
    MINUTE = "minute"


class ListCount(models.Model):
    """Rows of one list of an owner, and of one kind, created in one bucket, without pending count deltas.

    The kind is what the list is filtered by, such as `succeeded` for payments.
    """

    list = models.CharField(max_length=12)
    owner_id = PublicId(help_text="Whose list: a merchant, a webhook, or all merchants: `live` or `test`.")
    kind = models.CharField(max_length=40)
    bucket = models.CharField(max_length=6, choices=CountBucket.choices)
    starts_at = models.DateTimeField()
    count = models.BigIntegerField()
    amount = models.BigIntegerField(default=0, db_default=0, help_text="Satang of these rows.")

    class Meta:
        default_permissions = ()
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
            models.CheckConstraint(condition=Q(bucket__in=CountBucket.values), name="listcount_bucket_known"),
        ]

    def __str__(self) -> str:
        return f"{self.count} {self.list} of {self.bucket} {self.starts_at:%Y-%m-%d %H:%M}"


class CountDelta(models.Model):
    """A change of the rows of one list, minute and kind that is not in a list count yet.

    A trigger appends it in the commit of the change, so writes of a busy merchant never wait for a counter.
    Another trigger adds deleted deltas to the counts.
    """

    list = models.CharField(max_length=12)
    owner_id = PublicId()
    kind = models.CharField(max_length=40)
    minute = models.DateTimeField()
    delta = models.BigIntegerField()
    amount = models.BigIntegerField(default=0, db_default=0, help_text="The change in satang.")

    class Meta:
        default_permissions = ()
        indexes = [models.Index(fields=["owner_id", "list"], name="countdelta_of_list")]

    def __str__(self) -> str:
        return f"{self.delta:+} {self.list} at {self.minute:%Y-%m-%d %H:%M}"
