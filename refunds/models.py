"""Refunds: money that goes back to the payers of payments."""

from datetime import datetime, timedelta

from django.db import models
from django.db.models import F, Q

from core import digests, vault
from core.database import triggers
from core.database.columns import CausedRow, KeyedRow, PublicIdKey, RawJson, check, known
from core.database.state_machines import LockableRows, StateMachine
from counts.lists import CountedList
from merchants.models import Merchant
from payments.models import Payment
from transactions.models import Transaction


class RefundStatus(models.TextChoices):
    PENDING = "pending"  # its money is reserved
    COMPLETED = "completed"  # the money went back
    FAILED = "failed"  # the bank refused, or staff rejected it; the money is released
    CANCELED = "canceled"  # before it was submitted


class RefundPendingReason(models.TextChoices):
    AWAITING_DESTINATION = "awaiting_destination"
    PROCESSING = "processing"


class RefundReason(models.TextChoices):
    REQUESTED_BY_CUSTOMER = "requested_by_customer"
    DUPLICATE = "duplicate"
    FRAUDULENT = "fraudulent"
    LATE_PAYMENT = "late_payment"
    OTHER = "other"


class RefundReversal(KeyedRow):
    """The amount of a payment that its bank reversed. A refund shows what other refunds leave of it."""

    reversal_id = PublicIdKey()  # the bank transaction that reports it
    payment = models.OneToOneField(Payment, on_delete=models.PROTECT, related_name="reversal")
    amount = models.BigIntegerField()  # satang
    refunded_amount = models.BigIntegerField(default=0)  # satang that refunds show
    route = models.CharField(max_length=30)  # the bank, such as bank:sandbox
    created_at = models.DateTimeField()

    class Meta:
        triggers = [
            triggers.keep_rows("a refund reversal is never deleted"),
            triggers.ReadOnly("a refund reversal never changes", exclude=["refunded_amount"]),
            triggers.Refuse(
                "refunded_amount_grows",
                triggers.UPDATE,
                "the refunded amount of a reversal only grows",
                condition="NEW.refunded_amount < OLD.refunded_amount",
            ),
        ]
        constraints = [
            check(
                "refundreversal_refunded_within_amount",
                Q(refunded_amount__gte=0, refunded_amount__lte=models.F("amount")),
            ),
            check("refundreversal_amount_positive", Q(amount__gte=1)),
        ]


class RefundQuerySet(LockableRows["Refund"]):
    def awaiting_destination(self, payment: Payment) -> "RefundQuerySet":
        """Return locked rows, the oldest first. Lock the payment before."""
        waiting = self.filter(payment=payment, status=RefundStatus.PENDING, route="")
        return waiting.select_for_update(no_key=True).order_by("id")


class Refund(StateMachine, CausedRow):
    """Amounts are satang. The transfer with the same id has the account that the money goes to."""

    TRANSITIONS = {RefundStatus.PENDING: {RefundStatus.COMPLETED, RefundStatus.FAILED, RefundStatus.CANCELED}}

    id = PublicIdKey()
    merchant = models.ForeignKey(Merchant, on_delete=models.PROTECT, related_name="+", db_index=False)
    payment = models.ForeignKey(Payment, on_delete=models.PROTECT, related_name="refunds")
    transaction = models.OneToOneField(Transaction, on_delete=models.PROTECT, related_name="+")
    amount = models.BigIntegerField()  # satang
    # Of them money that the acquirer had not paid. Satang.
    from_unsettled = models.BigIntegerField(default=0, db_default=0)
    currency = models.CharField(max_length=3)
    status = models.CharField(max_length=9, choices=RefundStatus.choices, default=RefundStatus.PENDING)
    # Who sends it, such as bank:sandbox; empty while it waits for a destination.
    route = models.CharField(max_length=30, blank=True, default="")
    account_digest = digests.digest_column()  # of the account in the transfer
    awaiting_approval = models.BooleanField(default=False)  # A second person must approve it
    reason = models.CharField(max_length=21, choices=RefundReason.choices, null=True)  # noqa: DJ001
    note = models.CharField(max_length=255, null=True)  # noqa: DJ001
    metadata = RawJson(null=True)
    failure_code = models.CharField(max_length=40, null=True)  # noqa: DJ001
    cancel_actor = models.CharField(max_length=160, blank=True, default="")
    cancel_request_id = models.CharField(max_length=64, blank=True, default="")
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()
    completed_at = models.DateTimeField(null=True)
    returned_at = models.DateTimeField(null=True)  # when the bank returned its money
    # Set if the refund only shows a reversal by the bank.
    reversal = models.ForeignKey(RefundReversal, null=True, on_delete=models.PROTECT, related_name="refunds")

    objects = RefundQuerySet.as_manager()

    class Meta:
        permissions = [("create_refund", "Can refund payments"), ("cancel_refund", "Can cancel refunds")]
        triggers = [
            triggers.keep_rows("a refund is never deleted"),
            triggers.Refuse(
                "status_initial",
                triggers.INSERT,
                "a refund cannot begin like that",
                condition=(
                    "NEW.status <> (CASE WHEN NEW.reversal_id IS NULL THEN 'pending' ELSE 'completed' END)"
                ),
            ),
            triggers.ReadOnly(
                "what was asked for never changes",
                exclude=[
                    *("status", "route", "account_digest", "awaiting_approval", "failure_code"),
                    *("cancel_actor", "cancel_request_id", "updated_at", "completed_at", "returned_at"),
                ],
                erasable=["note"],
                erasable_if="OLD.status <> 'pending'",
            ),
            triggers.Refuse(
                "route_set_once",
                triggers.UPDATE,
                "a refund keeps its route and its destination",
                condition="(NEW.route, NEW.account_digest) <> (OLD.route, OLD.account_digest) "
                "AND (OLD.route <> '' OR OLD.status <> 'pending')",
            ),
            triggers.Refuse(
                "approved_once",
                triggers.UPDATE,
                "a refund that is approved does not wait again",
                condition="NEW.awaiting_approval AND NOT OLD.awaiting_approval AND OLD.route <> ''",
            ),
            triggers.Transitions(),
            triggers.final(
                "status",
                [RefundStatus.PENDING],
                ["completed_at", "failure_code", "cancel_actor", "cancel_request_id"],
                "a refund keeps how it ended",
            ),
            triggers.set_once("returned_at", "a refund keeps when its money came back"),
        ]
        indexes = [
            models.Index(fields=["merchant", "created_at", "id"], name="refund_newest_first"),
            models.Index(fields=["merchant", "status", "created_at", "id"], name="refund_filtered"),
            models.Index(
                fields=["returned_at"], condition=Q(returned_at__isnull=False), name="refund_returned"
            ),
        ]
        constraints = [
            known("status", RefundStatus, name="refund_status_known"),
            check("refund_reason_known", Q(reason__isnull=True) | Q(reason__in=RefundReason.values)),
            check("refund_amount_positive", Q(amount__gte=1)),
            check(
                "refund_from_unsettled_within_amount",
                Q(from_unsettled__gte=0, from_unsettled__lte=models.F("amount")),
            ),
            check("refund_currency_is_thb", Q(currency="THB")),
            check(
                "refund_completed_has_time",
                Q(status="completed", completed_at__isnull=False)
                | ~Q(status="completed") & Q(completed_at__isnull=True, returned_at__isnull=True),
            ),
            check(
                "refund_failed_has_reason",
                Q(status="failed", failure_code__isnull=False)
                | ~Q(status="failed") & Q(failure_code__isnull=True),
            ),
            check("refund_ends_by_a_route", ~Q(status__in=["completed", "failed"]) | ~Q(route="")),
            check(
                "refund_awaits_approval_with_a_route",
                Q(awaiting_approval=False) | Q(status="pending") & ~Q(route=""),
            ),
            check(
                "refund_by_reversal_is_completed",
                Q(reversal__isnull=True) | Q(status="completed", returned_at__isnull=True),
            ),
        ]

    @property
    def pending_reason(self) -> RefundPendingReason | None:
        """What a pending refund waits for. `processing` includes the wait for approval."""
        if self.status != RefundStatus.PENDING:
            return None
        return RefundPendingReason.PROCESSING if self.route else RefundPendingReason.AWAITING_DESTINATION


REFUNDS = CountedList(
    "refunds", Refund, kind_columns=("status",), kinds=tuple(RefundStatus.values), amount_sql="amount"
)
MAX_CLAIM_TRIES = 5
CLAIM_SHOWN_FOR = timedelta(days=30)  # how long a payer who named an account can see what became of it


class ClaimLinkStatus(models.TextChoices):
    OPEN = "open"
    BLOCKED = "blocked"  # all tries are used up
    USED = "used"  # the payer named an account
    EXPIRED = "expired"
    REVOKED = "revoked"  # by staff, or by a newer link


class ClaimLink(CausedRow):
    """A secret link by which the payer names the account of a refund. Lock payment and refund before it."""

    id = PublicIdKey()
    refund = models.ForeignKey(Refund, on_delete=models.PROTECT, related_name="claim_links")
    token_digest = models.CharField(max_length=64, unique=True)  # SHA-256, in hexadecimal
    token_sealed = models.TextField(editable=False)
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)

    class Meta:
        default_permissions = ()
        permissions = [("revoke_claimlink", "Can revoke claim links")]
        triggers = [
            triggers.keep_rows("a claim link is never deleted"),
            triggers.ReadOnly("a claim link is replaced, never changed", exclude=["used_at", "revoked_at"]),
            triggers.set_once("used_at", "a claim link is used once"),
            triggers.set_once("revoked_at", "a revoked claim link stays revoked"),
            triggers.Refuse(
                "revoked_is_not_used",
                triggers.UPDATE,
                "a revoked claim link is not used",
                condition="NEW.used_at IS NOT NULL AND OLD.used_at IS NULL AND OLD.revoked_at IS NOT NULL",
            ),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["refund"], condition=Q(revoked_at__isnull=True), name="claimlink_one_of_refund"
            ),
            check("claimlink_expires_after_creation", Q(expires_at__gt=F("created_at"))),
        ]

    @property
    def token(self) -> str:
        return vault.open_sealed(self.token_sealed, context=self.id)

    @property
    def tries_left(self) -> int:
        return MAX_CLAIM_TRIES - self.tries.count()

    def status_at(self, now: datetime) -> ClaimLinkStatus:
        if self.used_at is not None:
            return ClaimLinkStatus.USED
        if self.revoked_at is not None:
            return ClaimLinkStatus.REVOKED
        if now >= self.expires_at:
            return ClaimLinkStatus.EXPIRED
        return ClaimLinkStatus.OPEN if self.tries_left else ClaimLinkStatus.BLOCKED

    @property
    def takes_an_account(self) -> bool:
        """Whether the payer can try, if the page is shown."""
        waits = self.refund.pending_reason == RefundPendingReason.AWAITING_DESTINATION
        return waits and self.tries_left > 0

    def is_shown_at(self, now: datetime) -> bool:
        """Whether the page exists. It shows a payer for a while what became of the refund."""
        until = self.expires_at if self.used_at is None else self.used_at + CLAIM_SHOWN_FOR
        return self.revoked_at is None and now < until


class ClaimTry(KeyedRow):
    """A proof that somebody gave at a claim link. Its number is unique, so there are at most five."""

    link = models.ForeignKey(ClaimLink, on_delete=models.PROTECT, related_name="tries", db_index=False)
    number = models.SmallIntegerField()
    network = models.CharField(max_length=43, blank=True)
    is_proven = models.BooleanField()
    tried_at = models.DateTimeField()

    class Meta(KeyedRow.Meta):
        verbose_name_plural = "claim tries"
        triggers = [triggers.append_only("a try of a claim is never changed")]
        indexes = [models.Index(fields=["network", "tried_at"], name="claimtry_of_network")]
        constraints = [
            models.UniqueConstraint(fields=["link", "number"], name="claimtry_number_unique"),
            check("claimtry_number_limited", Q(number__gte=1, number__lte=MAX_CLAIM_TRIES)),
        ]
