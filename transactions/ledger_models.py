"""The double-entry ledger: accounts, journals, their entries, and entries not yet folded into a balance."""

from django.db import models
from django.db.models import F, Q, Value
from django.db.models.functions import Concat

from core.columns import PublicId, PublicIdKey
from merchants.models import Merchant

CODE_LENGTH = 48  # the longest kind, a colon and an id


class Kind(models.TextChoices):
    AVAILABLE = "available"  # the merchant may send it out
    RESERVED = "reserved"  # promised to a refund or a withdrawal that is under way
    OWED = "owed"  # a bank took back more than there was; zero or less
    UNCONFIRMED = "unconfirmed"  # only an uploaded statement reports it; it cannot be spent
    BANK = "bank"
    ACQUIRER = "acquirer"
    SUSPENSE = "suspense"  # arrived, and nobody's yet
    LOSSES = "losses"  # what left a bank for good and was nobody's to lose but ours; zero or less


OPENED_TOGETHER = (Kind.AVAILABLE, Kind.RESERVED, Kind.OWED)
OF_MERCHANTS = (*OPENED_TOGETHER, Kind.UNCONFIRMED)
OUTSIDE = (Kind.BANK, Kind.ACQUIRER)


class Fact(models.TextChoices):
    """What happened in business. Each happens once to its subject."""

    PAYMENT = "payment"
    REFUND_RESERVED = "refund_reserved"
    REFUND_PAID = "refund_paid"
    REFUND_RELEASED = "refund_released"
    WITHDRAWAL_RESERVED = "withdrawal_reserved"
    WITHDRAWAL_PAID = "withdrawal_paid"
    WITHDRAWAL_RELEASED = "withdrawal_released"
    WITHDRAWAL_RETURNED = "withdrawal_returned"  # the bank sent it back after success
    REVERSAL = "reversal"  # a bank took back what it had reported
    OWED_FILLED = "owed_filled"  # what came in pays what is owed
    HELD = "held"  # money that waits for staff
    ACCEPTED = "accepted"  # it became a merchant's
    SENT_BACK = "sent_back"  # it went back where it came from
    MERGED = "merged"  # it is the same transaction as other money, and was counted twice
    UNMERGED = "unmerged"  # that was a mistake: it waits for staff again
    LOST = "lost"  # a bank took back what had left already
    RECOVERED = "recovered"  # what was lost could be taken after all
    CONFIRMED = "confirmed"  # a second source or person confirmed what only a statement reported


class Account(models.Model):
    """A place where money is. What it holds is `settled` and all that is unfolded of it; satang."""

    id = PublicIdKey(max_length=CODE_LENGTH)
    kind = models.CharField(max_length=11, choices=Kind.choices)
    merchant = models.ForeignKey(
        Merchant, on_delete=models.PROTECT, null=True, related_name="+", db_index=False
    )
    settled = models.BigIntegerField(default=0, help_text="Satang; without what is still unfolded.")

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(kind__in=Kind.values), name="account_kind_known"),
            models.CheckConstraint(
                condition=Q(
                    kind__in=OF_MERCHANTS,
                    merchant__isnull=False,
                    id=Concat(F("kind"), Value(":"), F("merchant_id"), output_field=models.TextField()),
                )
                | Q(kind=Kind.BANK, merchant__isnull=True, id__regex="^bank:.")
                | Q(kind=Kind.ACQUIRER, merchant__isnull=True, id__regex="^acquirer:.")
                | Q(kind=Kind.SUSPENSE, merchant__isnull=True, id__in=["suspense", "suspense:sandbox"])
                | Q(kind=Kind.LOSSES, merchant__isnull=True, id="losses"),
                name="account_code_says_whose",
            ),
            models.CheckConstraint(
                condition=Q(
                    kind__in=[Kind.AVAILABLE, Kind.RESERVED, Kind.UNCONFIRMED, Kind.SUSPENSE], settled__gte=0
                )
                | Q(kind__in=[Kind.OWED, Kind.LOSSES], settled__lte=0)
                | Q(kind__in=OUTSIDE),
                name="account_not_overdrawn",
            ),
        ]

    def __str__(self) -> str:
        return str(self.id)


class Journal(models.Model):
    """One posting: what happened, to what, and how much moved. Append-only."""

    fact = models.CharField(max_length=19, choices=Fact.choices)
    subject_id = PublicId(help_text="The payment, refund, withdrawal or receipt that it happened to.")
    amount = models.BigIntegerField(help_text="Satang that moved.")
    created_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["subject_id", "fact"], name="journal_once_per_fact"),
            models.CheckConstraint(condition=Q(fact__in=Fact.values), name="journal_fact_known"),
            models.CheckConstraint(condition=Q(amount__gt=0), name="journal_moves_something"),
        ]

    def __str__(self) -> str:
        return f"{self.fact} {self.subject_id}"


class Entry(models.Model):
    """One line of a journal, whose lines sum to zero. Append-only."""

    journal = models.ForeignKey(Journal, on_delete=models.PROTECT, related_name="entries", db_index=False)
    account = models.ForeignKey(Account, on_delete=models.PROTECT, related_name="+", db_index=False)
    amount = models.BigIntegerField(help_text="Satang; negative where it leaves the account.")
    created_at = models.DateTimeField(help_text="That of its journal.")

    class Meta:
        verbose_name_plural = "entries"
        indexes = [
            models.Index(fields=["account", "created_at"], include=["amount"], name="entry_of_account")
        ]
        constraints = [
            models.UniqueConstraint(fields=["journal", "account"], name="entry_once_per_account"),
            models.CheckConstraint(condition=~Q(amount=0), name="entry_moves_something"),
        ]

    def __str__(self) -> str:
        return f"{self.account_id} {self.amount:+}"


class Unfolded(models.Model):
    """An entry that `Account.settled` does not contain yet; folding deletes the row.

    Only what comes in, and what concerns the world outside, may wait here: money that leaves an account is
    taken from `settled` at once, where the database sees that it was there.
    """

    entry = models.OneToOneField(Entry, on_delete=models.PROTECT, primary_key=True, related_name="+")
    account_id = PublicId(max_length=CODE_LENGTH)
    amount = models.BigIntegerField(help_text="Satang.")

    class Meta:
        verbose_name_plural = "unfolded"
        indexes = [
            # A sweep goes on by id where its last commit ended. A balance is read from this index alone.
            models.Index(fields=["account_id", "entry"], include=["amount"], name="unfolded_in_order")
        ]
        constraints = [
            models.CheckConstraint(
                condition=Q(account_id__regex="^(bank|acquirer):")
                | Q(account_id__regex="^(available:|unconfirmed:|suspense(:sandbox)?$)", amount__gt=0),
                name="unfolded_never_takes",
            )
        ]

    def __str__(self) -> str:
        return f"{self.account_id} {self.amount:+}"
