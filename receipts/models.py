"""What banks say arrived: kept raw and for ever, before anything is judged."""

from typing import Any

from django.db import models
from django.db.models import Q

from core import vault
from core.columns import PublicIdKey
from merchants.models import Merchant
from payments.models import Payment


class Kind(models.TextChoices):
    CREDIT = "credit"
    DECLINE = "decline"
    REVERSAL = "reversal"


class Outcome(models.TextChoices):
    WAITING = ""  # stored, not judged yet
    APPLIED = "applied"  # the payment succeeded by it
    DECLINED = "declined"  # the payment failed by it
    REVERSED = "reversed"  # the bank took it back
    UNMATCHED = "unmatched"  # nobody asked for this money
    DUPLICATE = "duplicate"  # its payment is paid or failed already
    AMOUNT_MISMATCH = "amount_mismatch"  # more or less than was asked
    LATE = "late"  # paid after the code had expired


FOR_STAFF = {
    Outcome.REVERSED,
    Outcome.UNMATCHED,
    Outcome.DUPLICATE,
    Outcome.AMOUNT_MISMATCH,
    Outcome.LATE,
}


class ReceiptQuerySet(models.QuerySet["Receipt"]):
    def not_judged(self) -> "ReceiptQuerySet":
        return self.filter(outcome=Outcome.WAITING)

    def for_staff(self) -> "ReceiptQuerySet":
        return self.filter(outcome__in=FOR_STAFF)


class Receipt(models.Model):
    """One movement of money by a bank's word. The bank, its transaction id and the kind make it unique."""

    id = PublicIdKey()
    bank = models.CharField(max_length=20)
    bank_transaction_id = models.CharField(max_length=64)
    kind = models.CharField(max_length=8, choices=Kind.choices)
    biller_id = models.CharField(max_length=15)
    reference1 = models.CharField(max_length=35)
    reference2 = models.CharField(max_length=35, blank=True, default="")
    reference3 = models.CharField(max_length=35, blank=True, default="")
    amount = models.BigIntegerField(help_text="Satang.")
    paid_at = models.DateTimeField(help_text="The bank's time of payment.")
    payer_name = models.CharField(max_length=140, blank=True, default="")
    payer_bank_code = models.CharField(max_length=3, blank=True, default="")
    payer_account_sealed = models.TextField(blank=True, default="", editable=False)
    outcome = models.CharField(max_length=16, choices=Outcome.choices, default=Outcome.WAITING, blank=True)
    merchant = models.ForeignKey(Merchant, on_delete=models.PROTECT, null=True, related_name="+")
    payment = models.ForeignKey(Payment, on_delete=models.PROTECT, null=True, related_name="receipts")
    received_at = models.DateTimeField()
    judged_at = models.DateTimeField(null=True)

    objects: Any = ReceiptQuerySet.as_manager()

    class Meta:
        indexes = [
            models.Index(fields=["received_at"], condition=Q(outcome=""), name="receipt_not_judged"),
            models.Index(fields=["-received_at"], name="receipt_newest_first"),
        ]
        constraints = [
            models.UniqueConstraint(fields=["bank", "bank_transaction_id", "kind"], name="receipt_once"),
            models.UniqueConstraint(
                fields=["payment"], condition=Q(outcome="applied"), name="receipt_applied_once_per_payment"
            ),
            models.CheckConstraint(condition=Q(kind__in=Kind.values), name="receipt_kind_known"),
            models.CheckConstraint(condition=Q(outcome__in=Outcome.values), name="receipt_outcome_known"),
            models.CheckConstraint(condition=Q(amount__gte=0), name="receipt_amount_not_negative"),
        ]

    def __str__(self) -> str:
        return f"{self.bank} {self.bank_transaction_id}"

    @property
    def payer_account(self) -> str:
        sealed = self.payer_account_sealed
        return vault.open_sealed(sealed, context=self.id) if sealed else ""


class Verdict(models.TextChoices):
    NEW = "new"  # made a receipt, or settles an order of ours
    REPEAT = "repeat"  # the same again: nothing to do
    CONFLICT = "conflict"  # told differently before, or an order that nobody gave: waits for staff
    UNREADABLE = "unreadable"  # from the bank, but not understood: waits for staff


class Notice(models.Model):
    """A message as a bank sent it, byte for byte (sealed: it names payers). Append-only."""

    id = PublicIdKey()
    bank = models.CharField(max_length=20)
    source = models.CharField(max_length=10, default="callback")
    body_sealed = models.TextField(editable=False)
    verdict = models.CharField(max_length=10, choices=Verdict.choices)
    receipt = models.ForeignKey(Receipt, on_delete=models.PROTECT, null=True, related_name="notices")
    received_at = models.DateTimeField()

    class Meta:
        indexes = [models.Index(fields=["-received_at"], name="notice_newest_first")]
        constraints = [
            models.CheckConstraint(condition=Q(verdict__in=Verdict.values), name="notice_verdict_known")
        ]

    def __str__(self) -> str:
        return f"{self.bank} {self.received_at:%Y-%m-%d %H:%M:%S}"

    @property
    def body(self) -> bytes:
        """Sealed as latin-1 text, which holds any bytes."""
        return vault.open_sealed(self.body_sealed, context=self.id).encode("latin-1")
