"""What staff did about money that did not fit: who, when and why; and money on its way back to a payer."""

from typing import Any

from django.db import models
from django.db.models import Q

from core.columns import PublicId, PublicIdKey
from receipts.models.receipts import Receipt


class Deed(models.TextChoices):
    ACCEPTED = "accepted"
    ATTACHED = "attached"
    SENT_BACK = "sent_back"  # ordered at the bank
    SENT_BACK_BY_HAND = "sent_back_by_hand"  # done outside, at the bank's own counter
    MERGED = "merged"  # it is the same transaction as another, and counts once
    DISMISSED = "dismissed"  # seen; there is nothing to do
    KEPT = "kept"  # a refund's money that came back: the merchant has it again
    LOST = "lost"  # a bank took back what had left already: the operator bears it
    BOOKED_RETURNED = "booked_returned"  # the bank says that it never sent what it had reported as sent
    BOOKED_FAILED = (
        "booked_failed"  # a card was charged another amount, and staff refunded it at its acquirer
    )
    REOPENED = "reopened"  # it was dismissed, merged or booked as a loss by mistake
    CONFIRMED = "confirmed"  # a second person confirms money that only a statement reports


class Act(models.Model):
    """An act about an exception. Append-only. What ended is over until it is reopened."""

    subject_id = PublicId(help_text="The receipt, notice, refund or contradiction.")
    deed = models.CharField(max_length=17, choices=Deed.choices)
    by = models.CharField(max_length=150, help_text="Who of staff, or the policy that decided.")
    why = models.CharField(max_length=500)
    payment_id = PublicId(null=True, help_text="That it was about.")
    round = models.PositiveSmallIntegerField(
        default=0, db_default=0, help_text="How often its subject was opened again by then."
    )
    posted_as = PublicId(
        null=True, help_text="What the ledger calls a loss or a merge; empty where that is its subject."
    )
    merged_with = PublicId(null=True, help_text="The bank transaction that counts instead.")
    request_id = models.CharField(max_length=64, blank=True, default="")
    at = models.DateTimeField()

    class Meta:
        indexes = [
            models.Index(fields=["subject_id"], name="act_of_subject"),
            models.Index(fields=["payment_id"], condition=Q(payment_id__isnull=False), name="act_of_payment"),
        ]
        constraints = [
            models.CheckConstraint(condition=Q(deed__in=Deed.values), name="act_deed_known"),
            models.CheckConstraint(condition=~Q(by="") & ~Q(why=""), name="act_says_who_and_why"),
            models.UniqueConstraint(
                fields=["subject_id", "round"],
                condition=Q(
                    deed__in=["merged", "dismissed", "kept", "lost", "booked_returned", "booked_failed"]
                ),
                name="act_ends_a_subject_once",
            ),
            models.CheckConstraint(
                condition=Q(deed="merged", merged_with__isnull=False)
                | ~Q(deed="merged") & Q(merged_with__isnull=True),
                name="act_names_the_other_iff_merged",
            ),
            models.UniqueConstraint(
                fields=["subject_id", "round"], condition=Q(deed="reopened"), name="act_opens_a_subject_once"
            ),
            models.UniqueConstraint(
                fields=["subject_id"], condition=Q(deed="confirmed"), name="act_confirms_a_subject_once"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.subject_id} {self.deed} by {self.by}"

    @property
    def posting(self) -> str:
        """The subject of what the ledger has of a loss or a merge."""
        return str(self.posted_as or self.subject_id)


class ReturnStatus(models.TextChoices):
    PENDING = "pending"  # ordered; the bank has not said yet
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELED = "canceled"  # before the bank was told


class Return(models.Model):
    """Money of a receipt on its way back to whoever paid it; the order to the bank has the same id.

    A return that failed stays as it is: the receipt waits again, and another return may be made.
    """

    id = PublicIdKey()
    receipt = models.ForeignKey(Receipt, on_delete=models.PROTECT, related_name="returns")
    amount = models.BigIntegerField(help_text="Satang; all of the receipt.")
    route = models.CharField(max_length=30, help_text="By whom it is sent, such as bank:sandbox.")
    status = models.CharField(max_length=9, choices=ReturnStatus.choices, default=ReturnStatus.PENDING)
    by_hand = models.BooleanField(default=False, help_text="Staff sent it at the bank; there is no order.")
    bank_reference = models.CharField(max_length=64, blank=True, default="")
    failure_code = models.CharField(max_length=40, blank=True, default="")
    created_at = models.DateTimeField()
    completed_at = models.DateTimeField(null=True)
    returned_at = models.DateTimeField(null=True, help_text="When its money came back after all.")

    objects: Any = models.Manager()

    class Meta:
        indexes = [
            models.Index(fields=["receipt"], name="return_of_receipt"),
            models.Index(
                fields=["bank_reference"], condition=~Q(bank_reference=""), name="return_by_bank_reference"
            ),
        ]
        constraints = [
            models.CheckConstraint(condition=Q(status__in=ReturnStatus.values), name="return_status_known"),
            models.CheckConstraint(condition=Q(amount__gte=1), name="return_amount_positive"),
            models.CheckConstraint(
                condition=Q(status="completed", completed_at__isnull=False)
                | ~Q(status="completed") & Q(completed_at__isnull=True, returned_at__isnull=True),
                name="return_completed_has_time",
            ),
            models.CheckConstraint(
                condition=Q(status="failed") & ~Q(failure_code="") | ~Q(status="failed") & Q(failure_code=""),
                name="return_reason_iff_failed",
            ),
            models.UniqueConstraint(
                fields=["receipt"],
                condition=Q(status="pending") | Q(status="completed", returned_at__isnull=True),
                name="return_once_at_a_time",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.id} {self.status}"
