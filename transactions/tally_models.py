"""How many rows the history has, kept beside it; `transactions.counting` says how they are read.

The database alone writes both tables, by triggers, and refuses other writes to them.
"""

from django.db import models
from django.db.models import Q

from core.columns import PublicId


class Span(models.TextChoices):
    """UTC time is cut into these; each cuts the one before without a rest."""

    MONTH = "month"
    DAY = "day"
    HOUR = "hour"
    MINUTE = "minute"


class Tally(models.Model):
    """Rows of one merchant, type and status created within one span, without what is still uncounted."""

    merchant_id = PublicId()
    span = models.CharField(max_length=6, choices=Span.choices)
    begins_at = models.DateTimeField()
    type = models.CharField(max_length=7)
    status = models.CharField(max_length=9)
    count = models.BigIntegerField()

    class Meta:
        verbose_name_plural = "tallies"
        constraints = [
            models.UniqueConstraint(
                fields=["merchant_id", "span", "begins_at", "type", "status"], name="tally_once"
            ),
            models.CheckConstraint(condition=Q(span__in=Span.values), name="tally_span_known"),
        ]

    def __str__(self) -> str:
        return f"{self.count} of {self.span} {self.begins_at:%Y-%m-%d %H:%M}"


class Uncounted(models.Model):
    """Rows that came to a minute, or left one type and status for another, and are not in a tally yet.

    Appended in the commit of the change itself, so that rows of a busy merchant never queue for a tally.
    Deleting it adds it to the tallies.
    """

    merchant_id = PublicId()
    minute = models.DateTimeField()
    type = models.CharField(max_length=7)
    status = models.CharField(max_length=9)
    change = models.BigIntegerField()

    class Meta:
        verbose_name_plural = "uncounted"
        indexes = [models.Index(fields=["merchant_id", "minute"], name="uncounted_of_merchant")]

    def __str__(self) -> str:
        return f"{self.change:+} at {self.minute:%Y-%m-%d %H:%M}"
