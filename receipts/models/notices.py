"""Messages as banks sent them: kept raw and for ever, before anything is judged."""

from django.db import models
from django.db.models import Q

from core import vault
from core.columns import PublicId, PublicIdKey
from receipts.models.receipts import Receipt, Source


class Verdict(models.TextChoices):
    NEW = "new"  # made a receipt, or settles an order of ours
    REPEAT = "repeat"  # the same again: nothing to do
    CONFLICT = "conflict"  # told differently before, or an order that nobody gave: waits for staff
    UNREADABLE = "unreadable"  # from the bank, but not understood: waits for staff
    UNSIGNED = "unsigned"  # proves nothing by itself: the bank is asked, and its answer is believed


class Notice(models.Model):
    """A message as a bank sent it, byte for byte (sealed: it names payers). Append-only."""

    id = PublicIdKey()
    bank = models.CharField(max_length=20)
    source = models.CharField(max_length=10, choices=Source.choices, default=Source.CALLBACK)
    body_sealed = models.TextField(editable=False)
    verdict = models.CharField(max_length=10, choices=Verdict.choices)
    receipt = models.ForeignKey(Receipt, on_delete=models.PROTECT, null=True, related_name="notices")
    order_id = PublicId(null=True, help_text="Of the refund, withdrawal or return that it speaks of.")
    received_at = models.DateTimeField()
    request_id = models.CharField(max_length=64, blank=True, default="")

    class Meta:
        indexes = [
            models.Index(fields=["-received_at"], name="notice_newest_first"),
            models.Index(fields=["order_id"], condition=Q(order_id__isnull=False), name="notice_of_order"),
            models.Index(
                fields=["received_at"],
                condition=Q(verdict__in=["conflict", "unreadable"]),
                name="notice_for_staff",
            ),
        ]
        constraints = [
            models.CheckConstraint(condition=Q(verdict__in=Verdict.values), name="notice_verdict_known")
        ]

    def __str__(self) -> str:
        return f"{self.bank} {self.received_at:%Y-%m-%d %H:%M:%S}"

    @property
    def body(self) -> bytes:
        """Sealed as latin-1 text, which holds any bytes."""
        return vault.open_sealed(self.body_sealed, context=self.id).encode("latin-1")
