"""The double-entry ledger: accounts, journals, their entries, and entries that are still pending.

`BalanceTransaction` shows a merchant which journals changed its balance.
"""

from functools import reduce
from operator import or_

from django.db import models
from django.db.models import F, Q, Value
from django.db.models.functions import Concat

from core.database import triggers
from core.database.columns import KeyedRow, PublicId, PublicIdKey, check, known
from ledger.journal_types import BalanceTransactionType, JournalType
from merchants.models import Merchant

CODE_LENGTH = 48  # the longest type, a colon and an id


class AccountType(models.TextChoices):
    AVAILABLE = "available"  # can be refunded or withdrawn
    RESERVED = "reserved"  # for refunds and withdrawals in progress
    DEBT = "debt"  # money or fees taken beyond the balance; zero or less
    UNCONFIRMED = "unconfirmed"  # only an uploaded statement reports it; it cannot leave
    UNSETTLED = "unsettled"  # the acquirer has not paid it; only a refund of its payment can use it
    BANK = "bank"
    ACQUIRER = "acquirer"
    FEES = "fees"  # what a bank or acquirer keeps or charges for payments, without VAT
    FEE_VAT = "fee_vat"  # the VAT of these fees
    SUSPENSE = "suspense"  # money without an owner
    WRITE_OFFS = "write_offs"  # the operator's losses; zero or less


OPENED_TOGETHER = (AccountType.AVAILABLE, AccountType.RESERVED, AccountType.DEBT)
MERCHANT_ACCOUNT_TYPES = (*OPENED_TOGETHER, AccountType.UNCONFIRMED, AccountType.UNSETTLED)
EXTERNAL_ACCOUNT_TYPES = (AccountType.BANK, AccountType.ACQUIRER, AccountType.FEES, AccountType.FEE_VAT)
IS_EXTERNAL = reduce(or_, (Q(type=each, id__regex=f"^{each}:.") for each in EXTERNAL_ACCOUNT_TYPES))


class Account(KeyedRow):
    """A ledger account. Its balance is `rolled_up_balance` plus its pending entries; satang."""

    id = PublicIdKey(max_length=CODE_LENGTH)
    type = models.CharField(max_length=11, choices=AccountType.choices)
    merchant = models.ForeignKey(
        Merchant, on_delete=models.PROTECT, null=True, related_name="+", db_index=False
    )
    rolled_up_balance = models.BigIntegerField(default=0)  # satang, without pending entries
    # The same, as triggers of the entries sum it. Nobody else changes it.
    entries_total = models.BigIntegerField(default=0, db_default=0, editable=False)

    class Meta:
        triggers = [
            triggers.keep_rows("an account is never deleted"),
            triggers.ReadOnly(
                "an account never changes its merchant", fields=["id", "type", "merchant"], is_forbidden=True
            ),
        ]
        constraints = [
            known("type", AccountType, name="account_type_known"),
            check(
                "account_code_fits_type",
                Q(
                    type__in=MERCHANT_ACCOUNT_TYPES,
                    merchant__isnull=False,
                    id=Concat(F("type"), Value(":"), F("merchant_id"), output_field=models.TextField()),
                )
                | Q(merchant__isnull=True) & IS_EXTERNAL
                | Q(type=AccountType.SUSPENSE, merchant__isnull=True, id__in=["suspense", "suspense:sandbox"])
                | Q(
                    type=AccountType.WRITE_OFFS,
                    merchant__isnull=True,
                    id__in=["write_offs", "write_offs:sandbox"],
                ),
            ),
            check(
                "account_not_overdrawn",
                Q(
                    type__in=[
                        AccountType.AVAILABLE,
                        AccountType.RESERVED,
                        AccountType.UNCONFIRMED,
                        AccountType.UNSETTLED,
                        AccountType.SUSPENSE,
                    ],
                    rolled_up_balance__gte=0,
                )
                | Q(type__in=[AccountType.DEBT, AccountType.WRITE_OFFS], rolled_up_balance__lte=0)
                | Q(type__in=EXTERNAL_ACCOUNT_TYPES),
            ),
        ]


class Journal(models.Model):
    """One posting: its type, its subject and the amount. Append-only."""

    type = models.CharField(max_length=19, choices=JournalType.choices)
    subject_id = PublicId()  # the payment, refund, withdrawal or bank transaction
    amount = models.BigIntegerField()  # satang that moved
    created_at = models.DateTimeField()

    class Meta:
        triggers = [triggers.append_only("a posting is never changed")]
        constraints = [
            models.UniqueConstraint(fields=["subject_id", "type"], name="journal_once_per_subject_and_type"),
            known("type", JournalType, name="journal_type_known"),
            check("journal_amount_positive", Q(amount__gt=0)),
        ]

    def __str__(self) -> str:
        return f"{self.type} {self.subject_id}"


class Entry(models.Model):
    """One line of a journal. The lines of a journal sum to zero. Append-only.

    Journals and accounts are never deleted, so triggers check both (`ledger/sql/rules.sql`). A foreign key
    would also lock the account of the bank for each payment.
    """

    journal = models.ForeignKey(
        Journal, on_delete=models.DO_NOTHING, related_name="entries", db_constraint=False
    )
    account = models.ForeignKey(
        Account, on_delete=models.DO_NOTHING, related_name="+", db_constraint=False, db_index=False
    )
    amount = models.BigIntegerField()  # satang; negative if it leaves the account
    created_at = models.DateTimeField()  # the same as of its journal

    class Meta:
        triggers = [triggers.append_only("a posting is never changed")]
        verbose_name_plural = "entries"
        indexes = [
            # Past balances, the daily close, the monthly report, and the newest entry before a debit.
            models.Index(fields=["account", "created_at"], include=["amount"], name="entry_by_account")
        ]
        constraints = [check("entry_amount_not_zero", ~Q(amount=0))]

    def __str__(self) -> str:
        return f"{self.account_id} {self.amount:+}"


class PendingEntry(KeyedRow):
    """An entry that `Account.rolled_up_balance` does not contain yet. The roll-up deletes the row.

    Only credits and entries of external accounts can be pending. Money that leaves an account is taken from
    `rolled_up_balance` at once, where a CHECK refuses an overdraft.
    """

    # A roll-up continues after the last id of its last commit, and balances read the rows of an account.
    pk = models.CompositePrimaryKey("account_id", "entry_id")
    account_id = PublicId(max_length=CODE_LENGTH)
    entry_id = models.BigIntegerField()  # A trigger checks that the same statement posts it.
    amount = models.BigIntegerField()  # satang

    class Meta(KeyedRow.Meta):
        triggers = [triggers.never_updated("a pending entry is only added and deleted")]
        constraints = [
            check(
                "pendingentry_only_adds",
                Q(account_id__regex="^(bank|acquirer|fees|fee_vat):")
                | Q(
                    account_id__regex="^(available:|unconfirmed:|unsettled:|suspense(:sandbox)?$)",
                    amount__gt=0,
                ),
            )
        ]


class BalanceTransaction(KeyedRow):
    """A journal that changed a merchant's balance, as the merchant sees it. Append-only.

    The statement that posts the journal writes it. The type tells which balances changed, and the counts of
    the list (`counts`) hold the sums by type: running balances come from them.
    """

    id = PublicIdKey()
    merchant = models.ForeignKey(
        Merchant, on_delete=models.PROTECT, related_name="+", db_index=False, db_constraint=False
    )
    type = models.CharField(max_length=20, choices=BalanceTransactionType.choices)
    amount = models.BigIntegerField()  # satang that moved, without a sign
    source_id = PublicId()  # the payment, refund or withdrawal
    created_at = models.DateTimeField()  # the same as of its journal

    class Meta(KeyedRow.Meta):
        triggers = [triggers.append_only("a posting is never changed")]
        indexes = [
            # The list, of all types or of one (`is_merged`), and the balances after its rows.
            models.Index(fields=["merchant", "type", "created_at"], name="baltransaction_filtered")
        ]
        constraints = [
            known("type", BalanceTransactionType, name="baltransaction_type_known"),
            check("baltransaction_amount_positive", Q(amount__gt=0)),
        ]
