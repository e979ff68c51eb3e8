"""The history merchants see: a row for each payment that succeeded or failed, and for each refund."""

import fnmatch
from typing import Any

from django.db import models
from django.db.models import Q

from core.database import triggers
from core.database.columns import PublicId, PublicIdKey, check, known
from core.database.state_machines import StateMachine
from counts.lists import CountedList, ListFilter
from merchants.models import Merchant


class TransactionType(models.TextChoices):
    PAYMENT = "payment"
    REFUND = "refund"
    FAILED = "failed"


class TransactionStatus(models.TextChoices):
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    PENDING = "pending"
    REFUNDED = "refunded"


class Transaction(StateMachine):
    """A row of the history. Amounts are satang, negative for refunds."""

    TRANSITIONS = {
        TransactionStatus.PENDING: {TransactionStatus.SUCCEEDED, TransactionStatus.FAILED},
        TransactionStatus.SUCCEEDED: {TransactionStatus.REFUNDED},
    }

    id = PublicIdKey()
    merchant = models.ForeignKey(
        Merchant, on_delete=models.PROTECT, related_name="+", db_index=False, db_constraint=False
    )
    payment_id = PublicId()
    refund_id = PublicId(null=True)
    type = models.CharField(max_length=7, choices=TransactionType.choices)
    status = models.CharField(max_length=9, choices=TransactionStatus.choices)
    amount = models.BigIntegerField()  # satang; negative for refunds
    currency = models.CharField(max_length=3)
    created_at = models.DateTimeField()

    class Meta:
        triggers = [
            triggers.keep_rows("a transaction is never deleted"),
            triggers.ReadOnly("a transaction changes only its status", exclude=["status"], is_forbidden=True),
            triggers.Transitions(),
        ]
        indexes = [
            # The list, of all kinds or of some (`is_merged`).
            models.Index(fields=["merchant", "type", "status", "created_at"], name="transaction_filtered")
        ]
        constraints = [
            # Also finds the rows of a payment.
            models.UniqueConstraint(
                fields=["payment_id", "type", "refund_id"],
                nulls_distinct=False,
                name="transaction_once_per_payment",
            ),
            models.UniqueConstraint(
                fields=["refund_id"], condition=Q(refund_id__isnull=False), name="transaction_once_per_refund"
            ),
            known("type", TransactionType, name="transaction_type_known"),
            known("status", TransactionStatus, name="transaction_status_known"),
            check(
                "transaction_sign_fits_type",
                Q(type="refund", amount__lt=0, refund_id__isnull=False)
                | Q(type__in=["payment", "failed"], amount__gt=0, refund_id__isnull=True),
            ),
            check(
                "transaction_status_fits_type",
                Q(type="payment", status__in=["succeeded", "refunded"])
                | Q(type="failed", status="failed")
                | Q(type="refund", status__in=["pending", "succeeded", "failed"]),
            ),
            check("transaction_currency_is_thb", Q(currency="THB")),
        ]


TRANSACTIONS = CountedList(
    "transactions",
    Transaction,
    kind_columns=("type", "status"),
    amount_sql="amount",
    is_merged=True,
    kinds=(
        *("payment/succeeded", "payment/refunded", "failed/failed"),
        *("refund/pending", "refund/succeeded", "refund/failed"),
    ),
)


def matching(
    merchant_id: str, *, type: str | None = None, status: str | None = None, **period: Any
) -> ListFilter[Transaction]:
    """The transactions of a merchant, of one type or status if given, within `start` and `end`."""
    kinds = fnmatch.filter(TRANSACTIONS.kinds, f"{type or '*'}/{status or '*'}")
    return ListFilter(TRANSACTIONS, merchant_id, kinds if type or status else None, **period)
