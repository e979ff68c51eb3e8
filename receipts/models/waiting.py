"""All that waits for a person as one list, which the database keeps: money, messages and refunds."""

from typing import Any

from django.db import models
from django.db.models import Q

from core.columns import PublicId, PublicIdKey
from merchants.models import Merchant
from receipts.models.notices import Verdict
from receipts.models.receipts import Outcome

# Counting ends here: whoever reads a larger number would do the same.
COUNTED = 10_000


class Why(models.TextChoices):
    UNMATCHED = Outcome.UNMATCHED.value, "nobody asked for it"
    DUPLICATE = Outcome.DUPLICATE.value, "paid already"
    AMOUNT_MISMATCH = Outcome.AMOUNT_MISMATCH.value, "another amount"
    LATE = Outcome.LATE.value, "paid late"
    REVERSAL = "reversal", "taken back, never had"
    CONFLICT = Verdict.CONFLICT.value, "told differently"
    UNREADABLE = Verdict.UNREADABLE.value, "not understood"
    UNCONFIRMED = "unconfirmed", "The bank does not confirm it"
    RETURNED = "returned", "refund came back"
    CONTRADICTION = "contradiction", "Bank contradicts our record"


class Waiting(models.Model):
    """A receipt, notice, refund or contradiction that waits; its id says which. It leaves when staff act.

    Triggers keep it equal to the view `receipts_open`, in the commit of whatever changes that; nobody else
    writes it.
    """

    id = PublicIdKey()
    why = models.CharField("reason", max_length=16, choices=Why.choices)
    bank = models.CharField(max_length=20)
    is_sandbox = models.GeneratedField(
        expression=Q(bank="sandbox"),  # type: ignore[arg-type]  # Q is an expression to Django
        output_field=models.BooleanField(),
        db_persist=True,
        help_text="Of the sandbox bank, whose money is not real.",
    )
    merchant = models.ForeignKey(
        Merchant,
        on_delete=models.DO_NOTHING,
        null=True,
        related_name="+",
        db_constraint=False,
        db_index=False,
    )
    payment_id = PublicId(null=True)
    amount = models.BigIntegerField(null=True, help_text="Satang.")
    reference1 = models.CharField(max_length=35)
    bank_transaction_id = models.CharField(max_length=64)
    since = models.DateTimeField()
    words = models.TextField(
        db_collation="C", help_text="What it is searched by, in capitals: ids and references."
    )

    objects: Any = models.Manager()

    class Meta:
        default_permissions = ()
        verbose_name, verbose_name_plural = "exception", "exceptions"
        indexes = [
            models.Index(fields=["is_sandbox", "since", "id"], name="waiting_live_first"),
            models.Index(fields=["why", "is_sandbox", "since", "id"], name="waiting_of_reason"),
            models.Index(fields=["bank", "is_sandbox", "since", "id"], name="waiting_of_bank"),
            models.Index(fields=["merchant", "is_sandbox", "since", "id"], name="waiting_of_merchant"),
            models.Index(fields=["since", "id"], name="waiting_oldest_first"),
            models.Index(fields=["why", "since", "id"], name="waiting_by_reason"),
            models.Index(fields=["amount", "since", "id"], name="waiting_by_amount"),
        ]

    def __str__(self) -> str:
        return str(self.id)
