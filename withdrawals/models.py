"""A withdrawal, and what may become of it."""

from collections.abc import Mapping

from django.db import models
from django.db.models import Q

from core import triggers, vault
from core.columns import PublicIdKey, RawJson
from core.state_machines import StateMachine
from merchants.models import Merchant
from withdrawals.errors import WithdrawalNotFound


class WithdrawalStatus(models.TextChoices):
    PENDING = "pending"  # the money is reserved; no bank was told
    PROCESSING = "processing"  # the bank is told, and asked until it knows
    SUCCEEDED = "succeeded"  # the money arrived
    FAILED = "failed"  # it did not, or it came back
    CANCELED = "canceled"  # before any bank was told


class WithdrawalPendingReason(models.TextChoices):
    NEGATIVE_BALANCE = "negative_balance"  # held: nothing is submitted while its merchant owes


REJECTED_BY_STAFF, RETURNED_BY_BANK = "rejected_by_staff", "returned_by_bank"
BANK_UNREACHABLE = "bank_unreachable"


class WithdrawalQuerySet(models.QuerySet["Withdrawal"]):
    def of(self, merchant: Merchant) -> "WithdrawalQuerySet":
        return self.filter(merchant=merchant)

    def held(self, debts: Mapping[str, int]) -> "WithdrawalQuerySet":
        """Those that are not submitted because their merchant owes. debts: what `ledger.debts` returns."""
        return self.filter(status=WithdrawalStatus.PENDING, merchant__in=list(debts))

    def locked(self, withdrawal_id: str) -> "Withdrawal":
        """The row under its lock, which every change needs. Raises WithdrawalNotFound."""
        try:
            return self.select_for_update(no_key=True).get(pk=withdrawal_id)
        except self.model.DoesNotExist:
            raise WithdrawalNotFound(id=withdrawal_id) from None


class Withdrawal(StateMachine):
    """Money a merchant takes out. Amounts are satang; only `withdrawals` changes a row."""

    TRANSITIONS = {
        # Failed without being sent: staff rejected it.
        WithdrawalStatus.PENDING: {
            WithdrawalStatus.PROCESSING,
            WithdrawalStatus.CANCELED,
            WithdrawalStatus.FAILED,
        },
        WithdrawalStatus.PROCESSING: {WithdrawalStatus.SUCCEEDED, WithdrawalStatus.FAILED},
        WithdrawalStatus.SUCCEEDED: {WithdrawalStatus.FAILED},  # a bank sends back what it cannot book
    }

    id = PublicIdKey()
    merchant = models.ForeignKey(Merchant, on_delete=models.PROTECT, related_name="+", db_index=False)
    status = models.CharField(
        max_length=10, choices=WithdrawalStatus.choices, default=WithdrawalStatus.PENDING
    )
    amount = models.BigIntegerField(help_text="Satang.")
    currency = models.CharField(max_length=3)
    bank = models.CharField(max_length=20, help_text="Who sends it: name of the adapter in `banks`.")
    bank_code = models.CharField(max_length=3, help_text="Of the account it goes to.")
    account_sealed = models.TextField(editable=False)
    account_last4 = models.CharField(max_length=4)
    account_name = models.CharField(max_length=140)
    reference = models.CharField(max_length=35, null=True)  # noqa: DJ001 (null is "not given")
    metadata = RawJson(null=True)
    failure_code = models.CharField(max_length=40, null=True)  # noqa: DJ001
    bank_reference = models.CharField(max_length=64, null=True)  # noqa: DJ001
    awaiting_approval = models.BooleanField(
        default=False, help_text="A second person decides (`approvals`) whether it goes out."
    )
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()
    completed_at = models.DateTimeField(null=True, help_text="When it arrived, also if it came back.")

    objects = WithdrawalQuerySet.as_manager()

    class Meta:
        triggers = [
            triggers.keep_rows("a withdrawal is never deleted"),
            triggers.initial("status", [WithdrawalStatus.PENDING], noun="a withdrawal"),
            triggers.ReadOnly(
                "what was asked for never changes",
                fields=[
                    "id",
                    "merchant",
                    "amount",
                    "currency",
                    "bank",
                    "bank_code",
                    "account_sealed",
                    "account_last4",
                    "account_name",
                    "reference",
                    "metadata",
                    "created_at",
                ],
            ),
            triggers.set_once("completed_at", "a withdrawal keeps when it arrived"),
            triggers.Refuse(
                "approved_once",
                triggers.UPDATE,
                "a withdrawal that is approved does not wait again",
                condition="NEW.awaiting_approval AND NOT OLD.awaiting_approval",
            ),
            triggers.Transitions(),
        ]
        permissions = [
            ("cancel_withdrawal", "Can cancel withdrawals"),
        ]
        indexes = [
            models.Index(fields=["merchant", "-created_at", "-id"], name="withdrawal_newest_first"),
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
        ]
        constraints = [
            models.CheckConstraint(
                condition=Q(status__in=WithdrawalStatus.values), name="withdrawal_status_known"
            ),
            models.CheckConstraint(
                condition=Q(amount__gte=100, amount__lte=200_000_000), name="withdrawal_amount_in_range"
            ),
            models.CheckConstraint(condition=Q(currency="THB"), name="withdrawal_currency_is_thb"),
            models.CheckConstraint(
                condition=Q(bank_code__regex="^[0-9]{3}$", account_last4__regex="^[0-9]{4}$")
                & ~Q(bank="")
                & ~Q(account_sealed="")
                & ~Q(account_name=""),
                name="withdrawal_goes_to_an_account",
            ),
            models.CheckConstraint(
                condition=Q(status="failed", failure_code__isnull=False)
                | ~Q(status="failed") & Q(failure_code__isnull=True),
                name="withdrawal_reason_iff_failed",
            ),
            models.CheckConstraint(
                condition=Q(status="succeeded", completed_at__isnull=False)
                | Q(status="failed", failure_code=RETURNED_BY_BANK, completed_at__isnull=False)
                | Q(status="failed", completed_at__isnull=True) & ~Q(failure_code=RETURNED_BY_BANK)
                | Q(status__in=["pending", "processing", "canceled"], completed_at__isnull=True),
                name="withdrawal_completed_iff_arrived",
            ),
            models.CheckConstraint(
                condition=Q(awaiting_approval=False) | Q(status="pending"),
                name="withdrawal_awaits_approval_while_pending",
            ),
        ]

    def __str__(self) -> str:
        return str(self.id)

    @property
    def account(self) -> str:
        return vault.open_sealed(self.account_sealed, context=self.id)
