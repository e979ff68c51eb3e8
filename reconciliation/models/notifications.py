"""Notifications from banks, stored as they came and never deleted."""

from typing import Any

from django.db import models
from django.db.models import Q

from core import digests, vault
from core.database import triggers
from core.database.columns import KeyedRow, PublicId, PublicIdKey, SealedText, known
from core.digests import DigestedColumn, DigestedRow
from reconciliation.models.bank_transactions import BankTransaction, ReportSource
from reconciliation.models.listing import ReconciliationException
from reconciliation.models.usual_notification import USUAL_NOTIFICATION


class NotificationResult(models.TextChoices):
    NEW = "new"  # made a bank transaction, or completed one of our orders
    REPEAT = "repeat"  # repeats an earlier report
    CONFLICT = "conflict"  # contradicts an earlier report, or names an unknown order: an exception
    UNREADABLE = "unreadable"  # from the bank, but cannot be parsed: an exception
    FEE_DIFFERS = "fee_differs"  # a statement line with another fee than the terms: an exception
    MOVED = "moved"  # about a merchant that has moved to another instance: an exception
    UNSIGNED = "unsigned"  # an inquiry must confirm it


class BankNotification(DigestedRow):
    """One notification, byte for byte, encrypted because it names payers. Append-only."""

    DIGESTED = DigestedColumn("body_sealed", "body_digest", usual=USUAL_NOTIFICATION)

    id = PublicIdKey()
    bank = models.CharField(max_length=20)
    source = models.CharField(max_length=10, choices=ReportSource.choices, default=ReportSource.CALLBACK)
    body_sealed = SealedText(editable=False)
    body_digest = digests.digest_column()
    result = models.CharField(max_length=11, choices=NotificationResult.choices)
    bank_transaction = models.ForeignKey(
        BankTransaction,
        on_delete=models.PROTECT,
        null=True,
        related_name="notifications",
        db_constraint=False,
    )
    order_id = PublicId(null=True)  # the refund, withdrawal or return that it reports on
    received_at = models.DateTimeField()
    request_id = models.CharField(max_length=64, blank=True, default="")

    class Meta:
        triggers = [
            triggers.keep_rows("a notification of a bank is never deleted"),
            triggers.ReadOnly(
                "a notification of a bank never changes", erasable=["body_sealed"], is_forbidden=True
            ),
        ]
        indexes = [
            models.Index(
                fields=["order_id"], condition=Q(order_id__isnull=False), name="notification_by_order"
            )
        ]
        constraints = [
            known("result", NotificationResult, name="notification_result_known"),
            models.UniqueConstraint(
                fields=["bank_transaction"],
                condition=Q(result=NotificationResult.FEE_DIFFERS),
                name="notification_of_fee_once",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.bank} {self.received_at:%Y-%m-%d %H:%M:%S}"

    @property
    def body(self) -> bytes:
        """Return the raw bytes, none if they were erased. They are stored as latin-1 text."""
        sealed = self.body_sealed
        if not sealed:
            return b""
        return vault.open_sealed(sealed, context=self.id, usual=USUAL_NOTIFICATION).encode("latin-1")

    def listed(self) -> ReconciliationException:
        """Its row in the list of exceptions, with what it contradicts."""
        row = (
            self.bank_transaction.listed()
            if self.bank_transaction
            else ReconciliationException(bank=self.bank)
        )
        row.id, row.reason, row.opened_at = self.id, self.result, self.received_at
        row.merchant, row.payment_id, row.amount = None, None, None
        return row


class NotificationId(KeyedRow):
    """The id of a notification that made no credit, a second time.

    A trigger adds it in the commit of the notification. The audit compares both tables, so it finds a
    notification that was deleted. One that made a credit is missed by its bank transaction.
    """

    notification: Any = models.OneToOneField(
        BankNotification, on_delete=models.PROTECT, primary_key=True, related_name="+"
    )

    class Meta(KeyedRow.Meta):
        triggers = [triggers.append_only("the ids of notifications are kept")]
