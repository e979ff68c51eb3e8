"""Approvals of outgoing money, and the payout accounts that a merchant's money may go to."""

from datetime import datetime, timedelta

from django.db import models
from django.db.models import F, Q, Sum

from core import digests, vault
from core.database import triggers
from core.database.columns import KeyedRow, PublicId, PublicIdKey, check, known
from core.database.state_machines import LockableRows, StateMachine
from core.digests import DigestedColumn, DigestedRow
from merchants.models import Merchant

DAILY_LIMIT_WINDOW = timedelta(hours=24)  # the daily limit counts the requests of the last 24 hours


class ApprovalKind(models.TextChoices):
    WITHDRAWAL = "withdrawal"
    REFUND = "refund"  # to an account other than the payer's
    RETURN = "return"  # of held money, to an account that staff entered
    RETURN_BY_HAND = "return_by_hand", "Return sent by hand"  # staff sent it at the bank themselves
    WRITE_OFF = "write_off", "Write-off"  # booked as the operator's loss
    # Staff end a submitted order and release its money. The bank may still pay it.
    NEVER_ARRIVED = "never_arrived", "Order that never arrived"


REPEATABLE_KINDS = (ApprovalKind.WRITE_OFF, ApprovalKind.NEVER_ARRIVED)
"""A subject may have several approvals of these kinds, one after another."""


class ApprovalStatus(models.TextChoices):
    WITHIN_LIMITS = "within_limits"  # needs no second person
    WAITING = "waiting"
    APPROVED = "approved"
    REJECTED = "rejected"
    CANCELED = "canceled"  # its subject ended before the decision


class ApprovalReason(models.TextChoices):
    NONE = "", "within the limits"
    ITEM_LIMIT = "item_limit", "above the limit per item"
    DAILY_LIMIT = "daily_limit", "above the limit per 24 hours"


DECIDED_STATUSES = (ApprovalStatus.APPROVED, ApprovalStatus.REJECTED)
COUNTED_STATUSES = (ApprovalStatus.WITHIN_LIMITS, ApprovalStatus.WAITING, ApprovalStatus.APPROVED)
"""The statuses that the daily limit counts. Rejected and canceled money did not leave."""


class ApprovalQuerySet(LockableRows["Approval"]):
    def waiting(self) -> "ApprovalQuerySet":
        return self.filter(status=ApprovalStatus.WAITING)

    def outgoing_amount(self, merchant_id: str | None, *, now: datetime) -> int:
        """Return the satang that count against the daily limit. None: money without a merchant."""
        counted = self.filter(
            merchant=merchant_id, status__in=COUNTED_STATUSES, requested_at__gt=now - DAILY_LIMIT_WINDOW
        )
        return counted.aggregate(satang=Sum("amount"))["satang"] or 0


class Approval(StateMachine):
    """The decision about one item of outgoing money. An item within the limits has one too.

    Only `approvals.services` changes a row. A decided row never changes, and none is deleted.
    """

    TRANSITIONS = {
        ApprovalStatus.WAITING: {ApprovalStatus.APPROVED, ApprovalStatus.REJECTED, ApprovalStatus.CANCELED}
    }

    id = PublicIdKey()
    kind = models.CharField(max_length=14, choices=ApprovalKind.choices)
    subject_id = PublicId()  # The withdrawal, refund or return; for a write-off the bank transaction.
    merchant = models.ForeignKey(
        Merchant, on_delete=models.PROTECT, null=True, related_name="+", db_index=False
    )
    amount = models.BigIntegerField()  # satang
    bank_code = models.CharField(max_length=3, blank=True, default="")  # of the destination
    account_last4 = models.CharField(max_length=4, blank=True, default="")
    account_name = models.CharField(max_length=140, blank=True, default="")
    account_digest = digests.digest_column()  # of the account in the transfer
    status = models.CharField(max_length=13, choices=ApprovalStatus.choices)
    reason = models.CharField(
        "reason for approval", max_length=11, choices=ApprovalReason.choices, blank=True
    )
    requested_by = models.CharField(max_length=160, blank=True)  # the actor, as in core.request_context
    request_id = models.CharField(max_length=64, blank=True)
    requested_at = models.DateTimeField()
    note = models.CharField(max_length=500, blank=True, default="")  # what the requester wrote
    # The actor, as in core.request_context.
    decided_by = models.CharField(max_length=160, blank=True, default="")
    decided_at = models.DateTimeField(null=True)
    decision_note = models.CharField(max_length=500, blank=True, default="")  # what the decider wrote

    objects = ApprovalQuerySet.as_manager()

    class Meta:
        triggers = [
            triggers.keep_rows("an approval is never deleted"),
            triggers.initial(
                "status", [ApprovalStatus.WAITING, ApprovalStatus.WITHIN_LIMITS], noun="an approval"
            ),
            triggers.Transitions(),
            triggers.Refuse(
                "decided_once",
                triggers.UPDATE,
                "an approval changes once, when it is decided",
                condition=f"(OLD.status <> 'waiting' OR NEW.status = 'waiting') AND NOT {triggers.ERASING}",
            ),
            triggers.ReadOnly(
                "what was asked for never changes",
                exclude=["status", "decided_by", "decided_at", "decision_note"],
                erasable=["account_last4", "account_name", "note"],
                erasable_if="OLD.status <> 'waiting'",
            ),
        ]
        permissions = [("decide_approval", "Can approve and reject outgoing money")]
        indexes = [
            models.Index(fields=["status", "requested_at", "id"], name="approval_by_status"),
            models.Index(fields=["requested_at", "id"], name="approval_newest_first"),
            models.Index(fields=["subject_id"], name="approval_of_subject"),
            models.Index(
                fields=["merchant", "requested_at"],
                include=["amount"],
                condition=Q(status__in=COUNTED_STATUSES),
                name="approval_counted",
            ),
        ]
        constraints = [
            known("kind", ApprovalKind, name="approval_kind_known"),
            known("status", ApprovalStatus, name="approval_status_known"),
            known("reason", ApprovalReason, name="approval_reason_known"),
            check("approval_amount_positive", Q(amount__gte=1)),
            check(
                "approval_has_reason_iff_needed",
                Q(status="within_limits", reason="") | ~Q(status="within_limits") & ~Q(reason=""),
            ),
            check(
                "approval_decided_by_somebody",
                Q(status__in=["within_limits", "waiting"], decided_at__isnull=True, decided_by="")
                | Q(status="canceled", decided_at__isnull=False)
                | Q(status__in=DECIDED_STATUSES, decided_at__isnull=False) & ~Q(decided_by=""),
            ),
            check(
                "approval_decided_by_another",
                ~Q(status__in=DECIDED_STATUSES) | ~Q(decided_by=F("requested_by")),
            ),
            check("approval_rejected_has_note", ~Q(status="rejected") | ~Q(decision_note="")),
            models.UniqueConstraint(
                fields=["subject_id"],
                condition=~Q(kind__in=REPEATABLE_KINDS),
                name="approval_once_per_subject",
            ),
            models.UniqueConstraint(
                fields=["subject_id", "kind"], condition=Q(status="waiting"), name="approval_waits_once"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.subject_id}"

    @property
    def is_waiting(self) -> bool:
        return self.status == ApprovalStatus.WAITING


class PayoutPolicy(KeyedRow):
    """Whether a merchant's money goes to listed accounts only. Without a row it may go to any account."""

    merchant = models.OneToOneField(Merchant, on_delete=models.PROTECT, primary_key=True, related_name="+")
    is_restricted = models.BooleanField()  # only to accounts on the list
    changed_by = models.CharField(max_length=160)  # the actor, as in core.request_context
    changed_at = models.DateTimeField()

    class Meta:
        triggers = [
            triggers.keep_rows("a payout policy is switched off, and its row stays"),
            triggers.ReadOnly("a payout policy keeps its merchant", fields=["merchant"]),
        ]
        verbose_name, verbose_name_plural = "payout policy", "payout policies"


class PayoutAccount(DigestedRow):
    """An account on a merchant's list. A removed one stays as a record of who added and removed it."""

    DIGESTED = DigestedColumn("account_sealed", "account_digest", also=("bank_code", "account_name"))

    id = PublicIdKey()
    merchant = models.ForeignKey(Merchant, on_delete=models.PROTECT, related_name="+", db_index=False)
    bank_code = models.CharField(max_length=3)
    account_sealed = models.TextField(editable=False)
    account_fingerprint = models.CharField(max_length=64, editable=False)
    account_last4 = models.CharField(max_length=4)
    account_name = models.CharField(max_length=140)
    account_digest = digests.digest_column()
    added_by = models.CharField(max_length=160)  # the actor, as in core.request_context
    added_at = models.DateTimeField()
    usable_at = models.DateTimeField()  # when the waiting period ends
    removed_by = models.CharField(max_length=160, blank=True, default="")
    removed_at = models.DateTimeField(null=True)

    class Meta:
        triggers = [
            triggers.keep_rows("a payout account is removed from the list, and its row stays"),
            triggers.ReadOnly("an account on the list never changes", exclude=["removed_by", "removed_at"]),
            triggers.set_once("removed_at", "an account that was removed stays removed"),
            triggers.set_once("removed_by", "an account that was removed stays removed", is_text=True),
        ]
        indexes = [
            models.Index(fields=["added_at", "id"], name="payout_newest_first"),
            models.Index(fields=["merchant"], name="payout_of_merchant"),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["merchant", "bank_code", "account_fingerprint"],
                condition=Q(removed_at__isnull=True),
                name="payout_account_listed_once",
            ),
            check(
                "payout_account_added_by_somebody",
                ~Q(account_sealed="") & ~Q(account_fingerprint="") & ~Q(added_by=""),
            ),
            check(
                "payout_account_removed_by_somebody",
                Q(removed_at__isnull=True, removed_by="") | Q(removed_at__isnull=False) & ~Q(removed_by=""),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.bank_code} ...{self.account_last4}"

    @property
    def account(self) -> str:
        return vault.open_sealed(self.account_sealed, context=self.id)
