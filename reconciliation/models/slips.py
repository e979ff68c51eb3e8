from django.db import models
from django.db.models import Q

from core.database import triggers
from core.database.columns import CausedRow, PublicId
from reconciliation.models.bank_transactions import BankTransaction


class SlipCheck(CausedRow):
    """One check of a slip by staff. Append-only."""

    sending_bank = models.CharField(max_length=20, help_text="Three digits, or truemoney.")
    transaction_id = models.CharField(max_length=64, help_text="The sending bank's id.")
    bank_transaction = models.ForeignKey(
        BankTransaction, on_delete=models.PROTECT, null=True, related_name="slip_checks"
    )
    claimed_payment_id = PublicId(
        null=True, help_text="The payment that the slip was shown for, if staff entered one."
    )
    checked_at = models.DateTimeField()

    class Meta:
        triggers = [triggers.append_only("a slip check is never changed")]
        permissions = [
            ("check_slip", "Can check slips"),
            ("ask_bank", "Can ask banks about slips"),
        ]
        indexes = [
            models.Index(
                fields=["claimed_payment_id"],
                condition=Q(claimed_payment_id__isnull=False),
                name="slipcheck_of_payment",
            ),
            models.Index(fields=["transaction_id", "sending_bank"], name="slipcheck_of_slip"),
            models.Index(fields=["checked_at"], name="slipcheck_newest_first"),
        ]

    def __str__(self) -> str:
        return f"{self.sending_bank} {self.transaction_id}"
