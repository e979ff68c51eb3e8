"""Payers' slips that were shown to staff."""

from django.db import models
from django.db.models import Q

from core import triggers
from core.columns import PublicId
from reconciliation.matching.models import BankTransaction


class SlipCheck(models.Model):
    """A slip that somebody showed, each time it was shown. Append-only."""

    sending_bank = models.CharField(max_length=20, help_text="Three digits, or truemoney.")
    transaction_id = models.CharField(max_length=64, help_text="The sending bank's.")
    movement = models.ForeignKey(
        BankTransaction, on_delete=models.PROTECT, null=True, related_name="slip_checks"
    )
    claimed_payment_id = PublicId(
        null=True, help_text="The payment that it was shown for, where staff said one."
    )
    actor = models.CharField(max_length=160)
    checked_at = models.DateTimeField()
    request_id = models.CharField(max_length=64, blank=True, default="", db_default="")

    class Meta:
        triggers = [triggers.append_only("a slip check is never changed")]
        indexes = [
            models.Index(
                fields=["claimed_payment_id"],
                condition=Q(claimed_payment_id__isnull=False),
                name="slipcheck_of_payment",
            ),
            models.Index(fields=["transaction_id", "sending_bank"], name="slipcheck_of_slip"),
            models.Index(fields=["-checked_at"], name="slipcheck_newest_first"),
        ]

    def __str__(self) -> str:
        return f"{self.sending_bank} {self.transaction_id}"
