"""Whether money may leave: what was asked, by whom, whether a second person is needed, and what they said."""

from datetime import datetime, timedelta
from typing import Any

from django.db import models
from django.db.models import F, Q, Sum

from approvals.payout_models import PayoutAccount, PayoutPolicy
from core.columns import PublicId, PublicIdKey
from merchants.models import Merchant

__all__ = ["Approval", "Kind", "PayoutAccount", "PayoutPolicy", "Reason", "Status"]

WINDOW = timedelta(hours=24)
"""The daily limit counts what was asked for in this time before now."""


class Kind(models.TextChoices):
    """What sends the money."""

    WITHDRAWAL = "withdrawal"
    REFUND = "refund"  # to an account other than the payer's
    RETURN = "return"  # of money that fits no payment, to an account that staff entered
    RETURN_BY_HAND = "return_by_hand", "Return sent by hand"  # staff sent it at the bank itself
    WRITE_OFF = "write_off", "Write-off"  # booked as the operator's loss
    # Staff end an order that its bank was told of, and the money goes back: the bank may pay it all the same.
    NEVER_ARRIVED = "never_arrived", "Order that never arrived"


REPEATED = (Kind.WRITE_OFF, Kind.NEVER_ARRIVED)
"""What may be asked for again after it was rejected, or about something that was judged before."""


class Status(models.TextChoices):
    WITHIN_LIMITS = "within_limits"  # nobody has to approve it
    WAITING = "waiting"
    APPROVED = "approved"
    REJECTED = "rejected"
    CANCELED = "canceled"  # whatever asked for it was canceled, or is not possible any more


class Reason(models.TextChoices):
    """Why a second person is needed."""

    NONE = "", "within the limits"
    ITEM_LIMIT = "item_limit", "above the limit per item"
    DAILY_LIMIT = "daily_limit", "above the limit per 24 hours"


DECIDED = (Status.APPROVED, Status.REJECTED)
COUNTED = (Status.WITHIN_LIMITS, Status.WAITING, Status.APPROVED)
"""What the daily limit counts. A rejected item never left, nor did one that was canceled while it waited."""


class ApprovalQuerySet(models.QuerySet["Approval"]):
    def waiting(self) -> "ApprovalQuerySet":
        return self.filter(status=Status.WAITING)

    def locked(self, approval_id: str) -> "Approval":
        """The row under its lock. Lock the row of its subject before."""
        return self.select_for_update(no_key=True).get(pk=approval_id)

    def outgoing(self, merchant_id: str | None, *, now: datetime) -> int:
        """Satang that count against the daily limit of a merchant; None: of what is no merchant's."""
        counted = self.filter(merchant=merchant_id, status__in=COUNTED, requested_at__gt=now - WINDOW)
        return counted.aggregate(satang=Sum("amount"))["satang"] or 0


class Approval(models.Model):
    """The decision about one item of outgoing money. Each item has one, also if it is within the limits.

    Only `approvals.services` changes a row. A decided row never changes, and none is deleted.
    """

    id = PublicIdKey()
    kind = models.CharField(max_length=14, choices=Kind.choices)
    subject_id = PublicId(help_text="The withdrawal, refund or return; of a write-off the receipt.")
    merchant = models.ForeignKey(
        Merchant, on_delete=models.PROTECT, null=True, related_name="+", db_index=False
    )
    amount = models.BigIntegerField(help_text="Satang.")
    bank_code = models.CharField(max_length=3, blank=True, default="", help_text="Of the destination.")
    account_last4 = models.CharField(max_length=4, blank=True, default="")
    account_name = models.CharField(max_length=140, blank=True, default="")
    status = models.CharField(max_length=13, choices=Status.choices)
    reason = models.CharField("why it needs approval", max_length=11, choices=Reason.choices, blank=True)
    requested_by = models.CharField(max_length=160, blank=True, help_text="As core.origin has it.")
    request_id = models.CharField(max_length=64, blank=True)
    requested_at = models.DateTimeField()
    note = models.CharField(max_length=500, blank=True, default="", help_text="What the requester wrote.")
    decided_by = models.CharField(max_length=160, blank=True, default="", help_text="As core.origin has it.")
    decided_at = models.DateTimeField(null=True)
    why = models.CharField(max_length=500, blank=True, default="", help_text="What the decider wrote.")

    objects: Any = ApprovalQuerySet.as_manager()

    class Meta:
        permissions = [("decide_approval", "Can approve and reject outgoing money")]
        indexes = [
            models.Index(fields=["status", "requested_at", "id"], name="approval_by_status"),
            models.Index(fields=["-requested_at", "-id"], name="approval_newest_first"),
            models.Index(fields=["subject_id"], name="approval_of_subject"),
            models.Index(
                fields=["merchant", "requested_at"],
                include=["amount"],
                condition=Q(status__in=COUNTED),
                name="approval_counted",
            ),
        ]
        constraints = [
            models.CheckConstraint(condition=Q(kind__in=Kind.values), name="approval_kind_known"),
            models.CheckConstraint(condition=Q(status__in=Status.values), name="approval_status_known"),
            models.CheckConstraint(condition=Q(reason__in=Reason.values), name="approval_reason_known"),
            models.CheckConstraint(condition=Q(amount__gte=1), name="approval_amount_positive"),
            models.CheckConstraint(
                condition=Q(status="within_limits", reason="") | ~Q(status="within_limits") & ~Q(reason=""),
                name="approval_needed_for_a_reason",
            ),
            models.CheckConstraint(
                condition=Q(status__in=["within_limits", "waiting"], decided_at__isnull=True, decided_by="")
                | Q(status="canceled", decided_at__isnull=False)
                | Q(status__in=DECIDED, decided_at__isnull=False) & ~Q(decided_by=""),
                name="approval_decided_by_somebody",
            ),
            models.CheckConstraint(
                condition=~Q(status__in=DECIDED) | ~Q(decided_by=F("requested_by")),
                name="approval_decided_by_another",
            ),
            models.CheckConstraint(
                condition=~Q(status="rejected") | ~Q(why=""), name="approval_rejected_says_why"
            ),
            models.UniqueConstraint(
                fields=["subject_id"], condition=~Q(kind__in=REPEATED), name="approval_once_per_subject"
            ),
            models.UniqueConstraint(
                fields=["subject_id", "kind"], condition=Q(status="waiting"), name="approval_waits_once"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.subject_id}"

    @property
    def is_waiting(self) -> bool:
        return self.status == Status.WAITING
