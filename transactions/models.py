"""The history merchants see: a row for each payment that succeeded or failed, and for each refund."""

from django.db import models
from django.db.models import Q

from core.columns import PublicId, PublicIdKey
from merchants.models import Merchant
from transactions.ledger_models import Account, Entry, Fact, Journal, Kind, Unfolded
from transactions.tally_models import Span, Tally, Uncounted

__all__ = [
    "Account", "Entry", "Fact", "IllegalMove", "Journal", "Kind", "Span", "Status", "Tally", "Transaction",
    "Type", "Uncounted", "Unfolded",
]  # fmt: skip


class Type(models.TextChoices):
    PAYMENT = "payment"
    REFUND = "refund"
    FAILED = "failed"


class Status(models.TextChoices):
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    PENDING = "pending"
    REFUNDED = "refunded"


class IllegalMove(Exception):
    """There is no row of the history that could become what it was asked to become."""


class Transaction(models.Model):
    """Amounts are satang, negative for refunds. Names its payment by id: a journal does not ask back."""

    id = PublicIdKey()
    merchant = models.ForeignKey(Merchant, on_delete=models.PROTECT, related_name="+", db_index=False)
    payment_id = PublicId()
    refund_id = PublicId(null=True, unique=True)
    type = models.CharField(max_length=7, choices=Type.choices)
    status = models.CharField(max_length=9, choices=Status.choices)
    amount = models.BigIntegerField(help_text="Satang; negative for refunds.")
    currency = models.CharField(max_length=3)
    created_at = models.DateTimeField()

    class Meta:
        indexes = [
            models.Index(fields=["merchant", "-created_at", "-id"], name="transaction_newest_first"),
            models.Index(
                fields=["merchant", "type", "status", "-created_at", "-id"], name="transaction_filtered"
            ),
            models.Index(fields=["payment_id"], name="transaction_of_payment"),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["payment_id", "type"],
                condition=Q(type__in=["payment", "failed"]),
                name="transaction_once_per_payment",
            ),
            models.CheckConstraint(condition=Q(type__in=Type.values), name="transaction_type_known"),
            models.CheckConstraint(condition=Q(status__in=Status.values), name="transaction_status_known"),
            models.CheckConstraint(
                condition=Q(type="refund", amount__lt=0, refund_id__isnull=False)
                | Q(type__in=["payment", "failed"], amount__gt=0, refund_id__isnull=True),
                name="transaction_sign_fits_type",
            ),
            models.CheckConstraint(
                condition=Q(type="payment", status__in=["succeeded", "refunded"])
                | Q(type="failed", status="failed")
                | Q(type="refund", status__in=["pending", "succeeded", "failed"]),
                name="transaction_status_fits_type",
            ),
            models.CheckConstraint(condition=Q(currency="THB"), name="transaction_currency_is_thb"),
        ]

    def __str__(self) -> str:
        return str(self.id)
