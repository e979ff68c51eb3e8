"""Withdrawals: money that merchants send from their balance to bank accounts."""

from collections.abc import Mapping

from django.db import models
from django.db.models import Q

from core import digests, vault
from core.database import triggers
from core.database.columns import PublicIdKey, RawJson, check, known
from core.database.state_machines import LockableRows, StateMachine
from core.digests import DigestedColumn, DigestedRow
from core.failures import RETURNED_BY_BANK
from counts.lists import CountedList
from merchants.models import Merchant
from withdrawals.payout_models import NEEDS_STAFF, PayoutDays, PayoutNight, PayoutSchedule, SkipReason


class WithdrawalStatus(models.TextChoices):
    PENDING = "pending"  # its money is reserved; not submitted
    PROCESSING = "processing"  # the bank has, or may have, the order
    SUCCEEDED = "succeeded"  # the money arrived
    FAILED = "failed"  # it did not arrive, or the bank returned it
    CANCELED = "canceled"  # before it was submitted


class WithdrawalPendingReason(models.TextChoices):
    NEGATIVE_BALANCE = "negative_balance"  # held while the merchant has a debt


class WithdrawalQuerySet(LockableRows["Withdrawal"]):
    def held(self, debts: Mapping[str, int]) -> "WithdrawalQuerySet":
        """Withdrawals that wait until their merchant has no debt. debts: from `ledger.debts`."""
        return self.filter(status=WithdrawalStatus.PENDING, merchant__in=list(debts))


class Withdrawal(DigestedRow, StateMachine):
    """Amounts are satang. Only `withdrawals.services` changes a row."""

    TRANSITIONS = {
        # Failed before it was submitted: staff rejected it.
        WithdrawalStatus.PENDING: {
            WithdrawalStatus.PROCESSING,
            WithdrawalStatus.CANCELED,
            WithdrawalStatus.FAILED,
        },
        WithdrawalStatus.PROCESSING: {WithdrawalStatus.SUCCEEDED, WithdrawalStatus.FAILED},
        WithdrawalStatus.SUCCEEDED: {WithdrawalStatus.FAILED},  # a bank returns money that it cannot book
    }

    DIGESTED = DigestedColumn("account_sealed", "account_digest", also=("bank_code", "account_name"))

    id = PublicIdKey()
    merchant = models.ForeignKey(Merchant, on_delete=models.PROTECT, related_name="+", db_index=False)
    status = models.CharField(
        max_length=10, choices=WithdrawalStatus.choices, default=WithdrawalStatus.PENDING
    )
    amount = models.BigIntegerField()  # satang
    currency = models.CharField(max_length=3)
    bank = models.CharField(max_length=20)  # the bank that sends it: an adapter in `banks`
    bank_code = models.CharField(max_length=3)  # of the account it goes to
    account_sealed = models.TextField(editable=False)
    account_last4 = models.CharField(max_length=4)
    account_name = models.CharField(max_length=140)
    account_digest = digests.digest_column()
    reference = models.CharField(max_length=35, null=True)  # noqa: DJ001 (null is "not given")
    metadata = RawJson(null=True)
    payout_night = models.DateField(null=True)  # of a nightly payout: its day in Bangkok
    failure_code = models.CharField(max_length=40, null=True)  # noqa: DJ001
    bank_reference = models.CharField(max_length=64, null=True)  # noqa: DJ001
    awaiting_approval = models.BooleanField(default=False)  # A second person must approve it
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()
    completed_at = models.DateTimeField(null=True)  # when it arrived; kept if the bank returned it

    objects = WithdrawalQuerySet.as_manager()

    class Meta:
        triggers = [
            triggers.keep_rows("a withdrawal is never deleted"),
            triggers.initial("status", [WithdrawalStatus.PENDING], noun="a withdrawal"),
            triggers.ReadOnly(
                "what was asked for never changes",
                exclude=[
                    *("status", "failure_code", "bank_reference", "awaiting_approval", "updated_at"),
                    "completed_at",
                ],
            ),
            triggers.set_once("completed_at", "a withdrawal keeps when it arrived"),
            triggers.Refuse(
                "approved_once",
                triggers.UPDATE,
                "a withdrawal that is approved does not wait again",
                condition="NEW.awaiting_approval AND NOT OLD.awaiting_approval",
            ),
            triggers.final(
                "status",
                [WithdrawalStatus.PENDING, WithdrawalStatus.PROCESSING],
                ["bank_reference", "failure_code"],
                "a withdrawal keeps how it ended",
            ),
            triggers.Transitions(),
        ]
        permissions = [("cancel_withdrawal", "Can cancel withdrawals")]
        indexes = [
            models.Index(fields=["merchant", "created_at", "id"], name="withdrawal_newest_first"),
            models.Index(fields=["merchant", "status", "created_at", "id"], name="withdrawal_filtered"),
            models.Index(
                fields=["reference", "merchant"],
                condition=Q(reference__isnull=False),
                name="withdrawal_by_reference",
            ),
            models.Index(
                fields=["bank_reference"],
                condition=Q(bank_reference__isnull=False),
                name="withdrawal_by_bank_reference",
            ),
            models.Index(fields=["merchant"], condition=Q(status="pending"), name="withdrawal_pending"),
            models.Index(
                fields=["merchant", "payout_night"],
                condition=Q(payout_night__isnull=False),
                name="withdrawal_of_night",
            ),
        ]
        constraints = [
            known("status", WithdrawalStatus, name="withdrawal_status_known"),
            check("withdrawal_amount_in_range", Q(amount__gte=100, amount__lte=200_000_000)),
            check("withdrawal_currency_is_thb", Q(currency="THB")),
            check(
                "withdrawal_goes_to_an_account",
                Q(bank_code__regex="^[0-9]{3}$", account_last4__regex="^[0-9]{4}$")
                & ~Q(bank="")
                & ~Q(account_sealed="")
                & ~Q(account_name=""),
            ),
            check(
                "withdrawal_reason_iff_failed",
                Q(status="failed", failure_code__isnull=False)
                | ~Q(status="failed") & Q(failure_code__isnull=True),
            ),
            check(
                "withdrawal_completed_iff_arrived",
                Q(status="succeeded", completed_at__isnull=False)
                | Q(status="failed", failure_code=RETURNED_BY_BANK, completed_at__isnull=False)
                | Q(status="failed", completed_at__isnull=True) & ~Q(failure_code=RETURNED_BY_BANK)
                | Q(status__in=["pending", "processing", "canceled"], completed_at__isnull=True),
            ),
            check(
                "withdrawal_awaits_approval_while_pending", Q(awaiting_approval=False) | Q(status="pending")
            ),
        ]

    @property
    def account(self) -> str:
        return vault.open_sealed(self.account_sealed, context=self.id)


WITHDRAWALS = CountedList(
    "withdrawals",
    Withdrawal,
    kind_columns=("status",),
    kinds=tuple(WithdrawalStatus.values),
    amount_sql="amount",
)
