from django.db import models
from django.db.models import F, Q

from core.database import triggers
from core.database.columns import CausedRow, PublicId, PublicIdKey, check
from merchants.models import Merchant
from payments.models import Payment
from reconciliation.models.bank_transactions import BankTransaction


class SlipVerdict(models.TextChoices):
    """What a merchant is told about a slip."""

    VALID = "valid"
    REPEATED = "repeated"  # the money is of another payment, or the slip was valid before
    WRONG_AMOUNT = "wrong_amount"
    WRONG_RECEIVER = "wrong_receiver"
    NOT_FOUND = "not_found"  # no such transfer, or its money went back
    UNREADABLE = "unreadable"
    UNKNOWN = "unknown"  # the bank did not answer, or the money waits for a decision


OF_NOBODY = [SlipVerdict.WRONG_RECEIVER, SlipVerdict.UNREADABLE]
"""Verdicts that name no payment. A payment of the merchant has to be named by those about its money."""
OF_MONEY = [SlipVerdict.VALID, SlipVerdict.REPEATED, SlipVerdict.WRONG_AMOUNT]


class SlipCheck(CausedRow):
    """One check of a slip by staff or by a merchant. It never changes, and goes after its time.

    The first valid one of a payment stays: it refuses the same money a second time.
    """

    id = PublicIdKey()
    # Three digits, or truemoney. Empty if the slip is unreadable.
    sending_bank = models.CharField(max_length=20, blank=True)
    transaction_id = models.CharField(max_length=64, blank=True)  # the sending bank's id
    bank_transaction = models.ForeignKey(
        BankTransaction, on_delete=models.PROTECT, null=True, related_name="slip_checks"
    )
    claimed_payment_id = PublicId(null=True)  # the payment that the slip was shown for, if named
    # Empty if staff checked the slip.
    merchant = models.ForeignKey(
        Merchant, on_delete=models.PROTECT, null=True, related_name="+", db_index=False
    )
    verdict = models.CharField(max_length=14, choices=SlipVerdict.choices, blank=True, default="")
    # A trigger checks that it is the merchant's, and that of the bank transaction (`sql/rules.sql`).
    # The payment that the money is for.
    payment = models.ForeignKey(
        Payment, on_delete=models.PROTECT, null=True, related_name="+", db_index=False
    )
    is_first = models.BooleanField(default=False)  # the first in which a slip of the payment's money is valid
    checked_at = models.DateTimeField()

    class Meta:
        triggers = [
            triggers.never_updated("a slip check is never changed"),
            triggers.Refuse(
                "keep_rows",
                triggers.DELETE,
                "a slip check is kept",
                condition="OLD.is_first OR OLD.checked_at > now() - interval '29 days'",  # the setting has 30
                is_forbidden=True,
            ),
        ]
        permissions = [("check_slip", "Can check slips"), ("ask_bank", "Can ask banks about slips")]
        indexes = [
            models.Index(
                fields=["claimed_payment_id"],
                condition=Q(claimed_payment_id__isnull=False),
                name="slipcheck_of_payment",
            ),
            models.Index(fields=["transaction_id", "sending_bank"], name="slipcheck_of_slip"),
            models.Index(fields=["checked_at"], name="slipcheck_newest_first"),
            models.Index(fields=["checked_at"], condition=Q(is_first=False), name="slipcheck_to_delete"),
        ]
        constraints = [
            check(
                "slipcheck_merchant_gets_verdict",
                Q(merchant__isnull=True, verdict="", payment__isnull=True)
                | Q(merchant__isnull=False, verdict__in=SlipVerdict.values),
            ),
            check("slipcheck_shows_nothing_of_others", ~Q(verdict__in=OF_NOBODY) | Q(payment__isnull=True)),
            check("slipcheck_money_has_payment", ~Q(verdict__in=OF_MONEY) | Q(payment__isnull=False)),
            # Without a named payment a slip is valid once. With one, for the payment of its money.
            check(
                "slipcheck_valid_for_one_payment",
                ~Q(verdict=SlipVerdict.VALID)
                | Q(claimed_payment_id__isnull=True, is_first=True)
                | Q(claimed_payment_id__isnull=False, claimed_payment_id=F("payment_id")),
            ),
            check("slipcheck_first_is_valid", Q(is_first=False) | Q(verdict=SlipVerdict.VALID)),
            models.UniqueConstraint(
                fields=["payment"], condition=Q(is_first=True), name="slipcheck_first_once"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.sending_bank} {self.transaction_id}"
