"""The accounts that a merchant's money may go to, where the operator keeps a list of them."""

from typing import Any

from django.db import models
from django.db.models import Q

from core import vault
from core.columns import PublicIdKey
from merchants.models import Merchant


class PayoutPolicy(models.Model):
    """Whether a merchant's money goes to listed accounts only. Without a row it may go anywhere."""

    merchant = models.OneToOneField(Merchant, on_delete=models.PROTECT, primary_key=True, related_name="+")
    is_restricted = models.BooleanField(help_text="Only to accounts on the list.")
    changed_by = models.CharField(max_length=160, help_text="As core.origin has it.")
    changed_at = models.DateTimeField()

    class Meta:
        verbose_name, verbose_name_plural = "payout policy", "payout policies"

    def __str__(self) -> str:
        return str(self.merchant_id)


class PayoutAccount(models.Model):
    """An account on the list of a merchant. A removed one stays as a record of who added and removed it."""

    id = PublicIdKey()
    merchant = models.ForeignKey(Merchant, on_delete=models.PROTECT, related_name="+", db_index=False)
    bank_code = models.CharField(max_length=3)
    account_sealed = models.TextField(editable=False)
    account_fingerprint = models.CharField(max_length=64, editable=False)
    account_last4 = models.CharField(max_length=4)
    account_name = models.CharField(max_length=140)
    added_by = models.CharField(max_length=160, help_text="As core.origin has it.")
    added_at = models.DateTimeField()
    usable_at = models.DateTimeField(help_text="When the waiting period ends.")
    removed_by = models.CharField(max_length=160, blank=True, default="")
    removed_at = models.DateTimeField(null=True)

    objects: Any = models.Manager()

    class Meta:
        indexes = [
            models.Index(fields=["-added_at", "-id"], name="payout_newest_first"),
            models.Index(fields=["merchant"], name="payout_of_merchant"),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["merchant", "bank_code", "account_fingerprint"],
                condition=Q(removed_at__isnull=True),
                name="payout_account_listed_once",
            ),
            models.CheckConstraint(
                condition=~Q(account_sealed="") & ~Q(account_fingerprint="") & ~Q(added_by=""),
                name="payout_account_added_by_somebody",
            ),
            models.CheckConstraint(
                condition=Q(removed_at__isnull=True, removed_by="")
                | Q(removed_at__isnull=False) & ~Q(removed_by=""),
                name="payout_account_removed_by_somebody",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.bank_code} ...{self.account_last4}"

    @property
    def account(self) -> str:
        return vault.open_sealed(self.account_sealed, context=self.id)
