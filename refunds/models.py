"""Money that goes back to whoever paid: what was asked, and how far it has come."""

from typing import Any

from django.db import models
from django.db.models import Q

from core.columns import PublicIdKey, RawJson
from merchants.models import Merchant
from payments.models import Payment
from transactions.models import Transaction


class Status(models.TextChoices):
    PENDING = "pending"  # its money is set aside
    COMPLETED = "completed"  # the money went back
    FAILED = "failed"  # the bank would not, so the money is the merchant's again
    CANCELED = "canceled"  # before any bank was told


class PendingReason(models.TextChoices):
    AWAITING_DESTINATION = "awaiting_destination"
    PROCESSING = "processing"


class Reason(models.TextChoices):
    REQUESTED_BY_CUSTOMER = "requested_by_customer"
    DUPLICATE = "duplicate"
    FRAUDULENT = "fraudulent"
    LATE_PAYMENT = "late_payment"
    OTHER = "other"


REJECTED_BY_STAFF = "rejected_by_staff"
MOVES = {Status.PENDING: {Status.COMPLETED, Status.FAILED, Status.CANCELED}}


class IllegalMove(Exception):
    """A refund cannot go from where it is to where it was sent."""


class Takeback(models.Model):
    """What a bank took back of a payment by itself.

    Refunds of it show as much of it as no other refund has sent back, or is about to.
    """

    reversal_id = PublicIdKey(help_text="The receipt that tells of it.")
    payment = models.OneToOneField(Payment, on_delete=models.PROTECT, related_name="takeback")
    amount = models.BigIntegerField(help_text="Satang.")
    shown = models.BigIntegerField(default=0, help_text="Satang of it that refunds show.")
    route = models.CharField(max_length=30, help_text="The bank, such as bank:sandbox.")
    created_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(shown__gte=0, shown__lte=models.F("amount")), name="takeback_shown_within_amount"
            ),
            models.CheckConstraint(condition=Q(amount__gte=1), name="takeback_amount_positive"),
        ]

    def __str__(self) -> str:
        return str(self.reversal_id)


class RefundQuerySet(models.QuerySet["Refund"]):
    def of(self, merchant: Merchant) -> "RefundQuerySet":
        return self.filter(merchant=merchant)

    def awaiting_destination(self, payment: Payment) -> "RefundQuerySet":
        """Under their locks, the oldest first. Lock the payment before."""
        waiting = self.filter(payment=payment, status=Status.PENDING, route="")
        return waiting.select_for_update(no_key=True).order_by("id")

    def locked(self, refund_id: str) -> "Refund":
        """The row under its lock. Lock its payment before."""
        return self.select_for_update(no_key=True).get(pk=refund_id)


class Refund(models.Model):
    """Satang that go back. The account they go to is known to the transfer of the same id alone."""

    id = PublicIdKey()
    merchant = models.ForeignKey(Merchant, on_delete=models.PROTECT, related_name="+", db_index=False)
    payment = models.ForeignKey(Payment, on_delete=models.PROTECT, related_name="refunds")
    transaction = models.OneToOneField(Transaction, on_delete=models.PROTECT, related_name="+")
    amount = models.BigIntegerField(help_text="Satang.")
    currency = models.CharField(max_length=3)
    status = models.CharField(max_length=9, choices=Status.choices, default=Status.PENDING)
    route = models.CharField(
        max_length=30,
        blank=True,
        default="",
        help_text="By whom it is sent, such as bank:sandbox; empty until it is known where to.",
    )
    awaiting_approval = models.BooleanField(
        default=False, help_text="A second person decides (`approvals`) whether it goes out."
    )
    reason = models.CharField(max_length=21, choices=Reason.choices, null=True)  # noqa: DJ001
    note = models.CharField(max_length=255, null=True)  # noqa: DJ001
    metadata = RawJson(null=True)
    failure_code = models.CharField(max_length=40, null=True)  # noqa: DJ001
    asked_by = models.CharField(max_length=160, blank=True, default="", help_text="As core.origin has it.")
    asked_request_id = models.CharField(max_length=64, blank=True, default="")
    canceled_by = models.CharField(max_length=160, blank=True, default="")
    canceled_request_id = models.CharField(max_length=64, blank=True, default="")
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()
    completed_at = models.DateTimeField(null=True)
    returned_at = models.DateTimeField(null=True, help_text="When its money came back after all.")
    reversal = models.ForeignKey(
        Takeback,
        null=True,
        on_delete=models.PROTECT,
        related_name="refunds",
        help_text="By which its bank took the money back itself.",
    )

    objects: Any = RefundQuerySet.as_manager()

    class Meta:
        indexes = [
            models.Index(fields=["merchant", "-created_at", "-id"], name="refund_newest_first"),
            models.Index(
                fields=["returned_at"], condition=Q(returned_at__isnull=False), name="refund_returned"
            ),
        ]
        constraints = [
            models.CheckConstraint(condition=Q(status__in=Status.values), name="refund_status_known"),
            models.CheckConstraint(
                condition=Q(reason__isnull=True) | Q(reason__in=Reason.values), name="refund_reason_known"
            ),
            models.CheckConstraint(condition=Q(amount__gte=1), name="refund_amount_positive"),
            models.CheckConstraint(condition=Q(currency="THB"), name="refund_currency_is_thb"),
            models.CheckConstraint(
                condition=Q(status="completed", completed_at__isnull=False)
                | ~Q(status="completed") & Q(completed_at__isnull=True, returned_at__isnull=True),
                name="refund_completed_has_time",
            ),
            models.CheckConstraint(
                condition=Q(status="failed", failure_code__isnull=False)
                | ~Q(status="failed") & Q(failure_code__isnull=True),
                name="refund_failed_has_reason",
            ),
            models.CheckConstraint(
                condition=~Q(status__in=["completed", "failed"]) | ~Q(route=""), name="refund_ends_by_a_route"
            ),
            models.CheckConstraint(
                condition=Q(awaiting_approval=False) | Q(status="pending") & ~Q(route=""),
                name="refund_awaits_approval_with_a_route",
            ),
            models.CheckConstraint(
                condition=Q(reversal__isnull=True) | Q(status="completed", returned_at__isnull=True),
                name="refund_by_reversal_is_completed",
            ),
        ]

    def __str__(self) -> str:
        return str(self.id)

    @property
    def pending_reason(self) -> PendingReason | None:
        """What a pending refund waits for; of one that awaits approval also `awaiting_approval` says so."""
        if self.status != Status.PENDING:
            return None
        return PendingReason.PROCESSING if self.route else PendingReason.AWAITING_DESTINATION

    def become(self, target: Status, **fields: Any) -> None:
        """Change status, or raise IllegalMove. The caller holds the row lock."""
        if target not in MOVES.get(Status(self.status), set()):
            raise IllegalMove(f"{self.id}: {self.status} to {target}")
        self.note_down(status=target, **fields)

    def note_down(self, **fields: Any) -> None:
        """Change these columns and no other. The caller holds the row lock."""
        for name, value in fields.items():
            setattr(self, name, value)
        self.save(update_fields=list(fields))
