"""Merchants and their bank connections."""

from collections.abc import Collection
from typing import NamedTuple, Self

from django.contrib.postgres.fields import ArrayField
from django.db import models

from core.database import triggers
from core.database.columns import PublicIdKey, check, known
from core.thai.tax_ids import BRANCH, HEAD_OFFICE
from merchants.errors import MerchantMoved, MerchantSuspended

MAX_ORIGINS, MAX_ORIGIN_LENGTH = 10, 255
STANDBY_IS_FIXED = "keeps that bank and biller id"
_WEIGHTED = " + ".join(f"{14 - i} * (ascii(substr(NEW.tax_id, {i}, 1)) - 48)" for i in range(1, 13))
# As in `core.thai.tax_ids`.
HAS_OTHER_CHECK_DIGIT = (
    f"NEW.tax_id <> '' AND ascii(substr(NEW.tax_id, 13, 1)) - 48 <> mod(11 - mod({_WEIGHTED}, 11), 10)"
)


# SQL: the pairs of bank and biller id of merchant `m`.
OF_MERCHANT = "(m.bank, m.biller_id), (m.standby_bank, m.standby_biller_id)"


class Mode(models.TextChoices):
    TEST = "test"
    LIVE = "live"


class LateMoneyPolicy(models.TextChoices):
    """What happens to money that was paid after its code expired."""

    REVIEW = "review", "review"  # staff decide
    ACCEPT = "accept"  # the payment succeeds


class HoldsPayers(models.TextChoices):
    """Which payments are held, because another person than the named client may have paid them."""

    OFF = "off", "none"
    NO = "no", "if another person paid than the named client"
    UNKNOWN = "unknown", "also if the bank reports too little about who paid"


class CodeTerms(NamedTuple):
    """What codes carry of the agreement with a bank."""

    bank: str
    biller_id: str
    reference2: str
    reference3: str


class MerchantQuerySet(models.QuerySet["Merchant"]):
    def of_biller(self, bank: str, biller_id: str) -> "Merchant | None":
        """The merchant that has this biller id at this bank: its first bank or its stand-by."""
        first = models.Q(bank=bank, biller_id=biller_id)
        return self.filter(first | models.Q(standby_bank=bank, standby_biller_id=biller_id)).first()

    def of_billers(self, biller_ids: Collection[str]) -> Self:
        """The merchants that have any of these biller ids at any bank."""
        return self.filter(models.Q(biller_id__in=biller_ids) | models.Q(standby_biller_id__in=biller_ids))

    def banks(self) -> set[str]:
        """The first banks and the stand-bys of these merchants."""
        pairs = self.values_list("bank", "standby_bank").distinct()
        return {bank for pair in pairs for bank in pair if bank}


class Merchant(models.Model):
    """A shop. A test merchant uses the sandbox bank, a live one the bank of its connection.

    A live one may have a second bank: new codes go to this stand-by while the first bank fails.
    """

    id = PublicIdKey()
    name = models.CharField(max_length=140)
    mode = models.CharField(max_length=4, choices=Mode.choices)
    bank = models.CharField(max_length=20, blank=True, default="")  # name of the adapter in `banks`
    biller_id = models.CharField(max_length=15, blank=True, default="")  # 15 digits, given by the bank
    reference2 = models.CharField(max_length=20, blank=True, default="")  # sent in each code if given
    reference3 = models.CharField(max_length=20, blank=True, default="")  # sent in each code if given
    # Where new codes go while its bank fails.
    standby_bank = models.CharField(max_length=20, blank=True, default="", db_default="")
    standby_biller_id = models.CharField(max_length=15, blank=True, default="", db_default="")
    standby_reference2 = models.CharField(max_length=20, blank=True, default="", db_default="")
    standby_reference3 = models.CharField(max_length=20, blank=True, default="", db_default="")
    # Its bank does not answer.
    uses_standby = models.BooleanField(
        default=False, db_default=False, verbose_name="new codes go to the stand-by"
    )
    # When new codes last went to the other bank.
    bank_changed_at = models.DateTimeField(null=True, blank=True)
    # Whether a payment after the expiry of its code succeeds.
    late_money = models.CharField(
        max_length=6,
        choices=LateMoneyPolicy.choices,
        default=LateMoneyPolicy.REVIEW,
        verbose_name="paid after expiry",
    )
    # Refuse a QR code whose reference another open code has.
    refuses_open_reference = models.BooleanField(
        default=False, db_default=False, verbose_name="one open code per reference"
    )
    # Whether a payment is held whose payer is not the client whom the merchant named.
    holds_payers = models.CharField(
        max_length=7,
        choices=HoldsPayers.choices,
        default=HoldsPayers.OFF,
        db_default=HoldsPayers.OFF,
        verbose_name="held payments",
    )
    # Money of card payments is available before the acquirer has paid it.
    may_withdraw_unsettled = models.BooleanField(
        default=False, db_default=False, verbose_name="withdraws before settlement"
    )
    # Origins that may frame the payment page, and to which it links back.
    page_origins = ArrayField(
        models.CharField(max_length=MAX_ORIGIN_LENGTH),
        default=list,
        db_default=[],
        blank=True,
        verbose_name="sites of the shop",
    )
    # 13 digits, for the accountant.
    tax_id = models.CharField(max_length=13, blank=True, default="", db_default="")
    # 5 digits; 00000 is the head office.
    tax_branch = models.CharField(
        max_length=5, default=HEAD_OFFICE, db_default=HEAD_OFFICE, verbose_name="branch"
    )
    # It withholds 3 percent of the fees of its bank and acquirer, and pays them as tax.
    withholds_tax = models.BooleanField(default=False, db_default=False)
    shows_proof = models.BooleanField("proof page", default=False, db_default=False)
    # Satang: the median of the latest payments; empty before the first 20.
    usual_amount = models.BigIntegerField(null=True, editable=False)
    created_at = models.DateTimeField()
    # Since then its keys are refused, and it makes no codes and sends no money.
    suspended_at = models.DateTimeField(null=True, blank=True)
    # Since then another instance has its books, and nothing changes here.
    moved_at = models.DateTimeField(null=True, blank=True)

    objects = MerchantQuerySet.as_manager()

    class Meta:
        permissions = [
            ("suspend_merchant", "Can suspend merchants, and lift that"),
            ("create_merchant", "Can create merchants"),
            ("rename_merchant", "Can rename merchants"),
            ("set_late_money", "Can decide what happens to payments after expiry"),
            ("connect_bank", "Can connect merchants to their banks"),
            ("test_connection", "Can test the connections of merchants to their banks"),
            ("set_open_references", "Can decide whether a reference has one open code"),
            ("set_holds", "Can decide which payments are held for their payer"),
            ("set_page_origins", "Can name the sites of a shop for its payment page"),
            ("set_page_settings", "Can set how payment pages show a shop, and whom payers can ask"),
            ("set_unsettled", "Can decide whether money can leave before the acquirer has paid it"),
            ("set_tax_details", "Can set the tax ids of merchants, and whether they withhold tax"),
            ("set_proof", "Can decide whether a merchant has a public proof page"),
        ]
        # Tables without a foreign key to merchants need both (`merchants/sql/rules.sql`).
        triggers = [
            triggers.keep_rows("a merchant is never deleted"),
            triggers.ReadOnly("a merchant keeps its id", fields=["id"], is_forbidden=True),
            triggers.Refuse(
                "tax_id_is_checked",
                triggers.INSERT | triggers.UPDATE,
                "the tax id has another check digit",
                condition=HAS_OTHER_CHECK_DIGIT,
            ),
            triggers.Refuse(
                "keeps_used_standby",
                triggers.UPDATE,
                "a merchant whose codes went to its stand-by " + STANDBY_IS_FIXED,
                condition="OLD.bank_changed_at IS NOT NULL AND (NEW.bank_changed_at IS NULL OR "
                "(OLD.standby_bank, OLD.standby_biller_id) <> (NEW.standby_bank, NEW.standby_biller_id))",
            ),
        ]
        constraints = [
            known("mode", Mode, name="merchant_mode_known"),
            check(
                "merchant_sandbox_iff_test",
                models.Q(mode="test", bank="sandbox") | models.Q(mode="live") & ~models.Q(bank="sandbox"),
            ),
            known("late_money", LateMoneyPolicy, name="merchant_late_money_known"),
            known("holds_payers", HoldsPayers, name="merchant_holds_payers_known"),
            check("merchant_few_page_origins", models.Q(page_origins__len__lte=MAX_ORIGINS)),
            check(
                "merchant_tax_id_has_its_digits",
                models.Q(tax_id__regex="^([0-9]{13})?$", tax_branch__regex=f"^{BRANCH}$"),
            ),
            check(
                "merchant_moved_is_suspended",
                models.Q(moved_at__isnull=True)
                | models.Q(suspended_at__isnull=False, suspended_at__lte=models.F("moved_at")),
            ),
            models.UniqueConstraint(
                fields=["bank", "biller_id"], condition=~models.Q(biller_id=""), name="merchant_biller_unique"
            ),
            # `sql/rules.sql` compares them with those of the first banks.
            models.UniqueConstraint(
                fields=["standby_bank", "standby_biller_id"],
                condition=~models.Q(standby_bank=""),
                name="merchant_standby_unique",
            ),
            check(
                "merchant_standby_is_another_bank",
                models.Q(standby_bank="", standby_biller_id="", uses_standby=False)
                | models.Q(mode="live", standby_biller_id__regex="^[0-9]{15}$")
                & ~models.Q(standby_bank="")
                & ~models.Q(bank="")
                & ~models.Q(standby_bank=models.F("bank")),
            ),
            check(
                "merchant_standby_since",
                models.Q(uses_standby=False) | models.Q(bank_changed_at__isnull=False),
            ),
            models.CheckConstraint(
                condition=models.Q(shows_proof=False) | models.Q(mode="live"), name="merchant_proof_is_live"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.mode})"

    @property
    def first_terms(self) -> CodeTerms:
        return CodeTerms(self.bank, self.biller_id, self.reference2, self.reference3)

    @property
    def standby_terms(self) -> CodeTerms:
        return CodeTerms(
            self.standby_bank, self.standby_biller_id, self.standby_reference2, self.standby_reference3
        )

    @property
    def new_terms(self) -> CodeTerms:
        """What new codes carry."""
        return self.standby_terms if self.uses_standby else self.first_terms

    @property
    def all_terms(self) -> list[CodeTerms]:
        """Of its first bank and its stand-by, as far as it has them."""
        return [each for each in (self.first_terms, self.standby_terms) if each.biller_id]

    def terms_at(self, bank: str) -> CodeTerms:
        return self.standby_terms if bank == self.standby_bank else self.first_terms

    def has_biller(self, bank: str, biller_id: str) -> bool:
        return any((each.bank, each.biller_id) == (bank, biller_id) for each in self.all_terms)

    def check_open(self) -> None:
        """Raises MerchantMoved, MerchantSuspended."""
        if self.moved_at is not None:
            raise MerchantMoved()
        if self.suspended_at is not None:
            raise MerchantSuspended()


class BankConnection(models.Model):
    """Credentials and callers of a bank of a live merchant. Only `merchants.bank_connections` writes it."""

    merchant = models.ForeignKey(
        Merchant, on_delete=models.PROTECT, related_name="bank_connections", db_index=False
    )
    bank = models.CharField(max_length=20)  # name of the adapter in `banks`
    credentials_sealed = models.TextField(editable=False)
    address_secret_digest = models.BinaryField(unique=True, editable=False)
    # Networks from which the bank calls; none means any.
    callers = ArrayField(models.CharField(max_length=43), default=list, blank=True)
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["merchant", "bank"], name="bankconnection_one_at_each_bank")
        ]

    def __str__(self) -> str:
        return f"{self.merchant_id} at {self.bank}"
