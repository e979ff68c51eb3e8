"""Money that only an uploaded file or an unsigned notification reports, and of which its bank is asked."""

from django.db import models
from django.db.models import Q

from core.columns import PublicId
from merchants.models import Merchant
from receipts.models.inquiries import Said
from receipts.models.notices import Notice
from receipts.models.receipts import Receipt


class ConfirmationInquiry(models.Model):
    """A question to a bank: does it have this money? Asked until the bank confirms it, for a day.

    Its cause is a credit of a statement, or a notification that the bank does not sign.
    """

    bank = models.CharField(max_length=20)
    merchant = models.ForeignKey(
        Merchant, on_delete=models.PROTECT, related_name="+", db_index=False, help_text="At whose bank."
    )
    receipt = models.OneToOneField(
        Receipt, on_delete=models.PROTECT, null=True, related_name="confirmation_inquiry"
    )
    notice = models.OneToOneField(
        Notice, on_delete=models.PROTECT, null=True, related_name="confirmation_inquiry"
    )
    payment_id = PublicId(null=True, help_text="That the reference names.")
    bank_transaction_id = models.CharField(
        max_length=64, blank=True, default="", help_text="As the notification calls it."
    )
    biller_id = models.CharField(max_length=15)
    reference1 = models.CharField(max_length=35)
    amount = models.BigIntegerField(help_text="Satang.")
    paid_at = models.DateTimeField()
    is_fresh = models.BooleanField(help_text="Somebody may wait at the till.")
    attempts = models.SmallIntegerField(default=0)
    said = models.CharField(
        max_length=10, choices=Said.choices, blank=True, default="", help_text="The latest answer."
    )
    due_at = models.DateTimeField(null=True, help_text="Null: it is over.")
    lease_until = models.DateTimeField(null=True, help_text="A worker has it until then.")
    created_at = models.DateTimeField()
    alerted_at = models.DateTimeField(null=True, help_text="Since then staff see it among the exceptions.")
    confirmed_at = models.DateTimeField(null=True)

    class Meta:
        verbose_name_plural = "confirmation inquiries"
        indexes = [
            models.Index(
                fields=["bank", "is_fresh", "due_at"],
                condition=Q(due_at__isnull=False),
                name="confirmation_due_by_lane",
            ),
            models.Index(
                fields=["payment_id"], condition=Q(payment_id__isnull=False), name="confirmation_of_payment"
            ),
        ]
        constraints = [
            models.CheckConstraint(
                condition=Q(receipt__isnull=False, notice__isnull=True, bank_transaction_id="")
                | Q(receipt__isnull=True, notice__isnull=False) & ~Q(bank_transaction_id=""),
                name="confirmation_has_one_cause",
            ),
            models.CheckConstraint(
                condition=Q(confirmed_at__isnull=True) | Q(due_at__isnull=True),
                name="confirmation_is_over_when_confirmed",
            ),
            models.UniqueConstraint(
                fields=["bank", "bank_transaction_id", "biller_id", "reference1"],
                condition=Q(notice__isnull=False),
                name="confirmation_once_per_notification",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.bank} {self.receipt_id or self.notice_id}"
