"""What banks say arrived, what became of it, and what was decided where a person had to decide."""

from datetime import datetime
from typing import Any

from django.db import models
from django.db.models import Q

from core import vault
from core.columns import PublicIdKey
from merchants.models import Merchant
from payments.models import Payment


class Source(models.TextChoices):
    """By which way the bank's word came."""

    CALLBACK = "callback"
    INQUIRY = "inquiry"
    STATEMENT = "statement"


class Kind(models.TextChoices):
    CREDIT = "credit"
    DECLINE = "decline"
    REVERSAL = "reversal"


class Outcome(models.TextChoices):
    WAITING = ""  # stored, not judged yet
    APPLIED = "applied"  # the payment succeeded by it
    DECLINED = "declined"  # the payment failed by it
    REVERSED = "reversed"  # the bank took back a credit of ours
    ORDERED = "ordered"  # the bank tells that it took back what we had told it to
    UNMATCHED = "unmatched"  # nobody asked for this money, or we never had what is taken back
    DUPLICATE = "duplicate"  # its payment is paid or failed already
    AMOUNT_MISMATCH = "amount_mismatch"  # more or less than was asked
    LATE = "late"  # paid after the code had expired


# Money of these is in suspense until somebody decides.
HELD = [Outcome.UNMATCHED, Outcome.DUPLICATE, Outcome.AMOUNT_MISMATCH, Outcome.LATE]


class Resolution(models.TextChoices):
    """What was decided about a receipt that waits."""

    OPEN = ""
    ACCEPTED = "accepted"  # its own payment succeeded by it
    ATTACHED = "attached"  # another payment succeeded by it
    SENDING_BACK = "sending_back"  # on its way back to the payer
    SENT_BACK = "sent_back"
    TAKEN_BACK = "taken_back"  # the bank reversed it while it waited
    MERGED = "merged"  # the same transaction as another report, which counts
    DISMISSED = "dismissed"  # a reversal of what we never had
    LOST = "lost"  # a reversal of what had left already: the operator's loss


# Kept by the database too.
MOVES = {
    Resolution.OPEN: {
        Resolution.ACCEPTED,
        Resolution.ATTACHED,
        Resolution.SENDING_BACK,
        Resolution.SENT_BACK,
        Resolution.TAKEN_BACK,
        Resolution.MERGED,
        Resolution.DISMISSED,
        Resolution.LOST,
    },
    Resolution.SENDING_BACK: {Resolution.OPEN, Resolution.SENT_BACK, Resolution.TAKEN_BACK},
    Resolution.SENT_BACK: {Resolution.OPEN},  # it came back to us
    Resolution.MERGED: {Resolution.OPEN},  # there are two transactions after all
    Resolution.DISMISSED: {Resolution.OPEN},  # what it takes back was told after all
    Resolution.LOST: {Resolution.OPEN},  # it can be carried out after all
}
CREDITED = Q(outcome="applied") | Q(resolution__in=["accepted", "attached"])


class IllegalMove(Exception):
    """A receipt cannot go from what was decided to what is asked."""


class ReceiptQuerySet(models.QuerySet["Receipt"]):
    def not_judged(self) -> "ReceiptQuerySet":
        return self.filter(outcome=Outcome.WAITING)

    def for_staff(self) -> "ReceiptQuerySet":
        """Those that wait for a person."""
        return self.filter(outcome__in=HELD, resolution=Resolution.OPEN)

    def unconfirmed(self) -> "ReceiptQuerySet":
        """Money that only an uploaded statement reports."""
        return self.filter(is_confirmed=False).exclude(resolution=Resolution.MERGED)

    def credited(self) -> "ReceiptQuerySet":
        """Those by which a payment succeeded."""
        return self.filter(CREDITED)

    def locked(self, receipt_id: str) -> "Receipt":
        """The row under its lock. Its payment, and what it is to be attached to, are locked before."""
        return self.select_for_update(no_key=True).get(pk=receipt_id)


class Receipt(models.Model):
    """One movement of money by a bank's word. The bank, its transaction id and the kind make it unique."""

    id = PublicIdKey()
    bank = models.CharField(max_length=20)
    bank_transaction_id = models.CharField(
        max_length=64, help_text="The bank's; of a statement's line, which has none, one of ours."
    )
    also_known_as = models.CharField(
        max_length=64, blank=True, default="", help_text="The bank's id, told after a statement's line."
    )
    source = models.CharField(max_length=9, choices=Source.choices, default=Source.CALLBACK)
    kind = models.CharField(max_length=8, choices=Kind.choices)
    biller_id = models.CharField(max_length=15)
    reference1 = models.CharField(max_length=35)
    reference2 = models.CharField(max_length=35, blank=True, default="")
    reference3 = models.CharField(max_length=35, blank=True, default="")
    amount = models.BigIntegerField(help_text="Satang.")
    paid_at = models.DateTimeField(help_text="The bank's time of payment.")
    payer_name = models.CharField(max_length=140, blank=True, default="")
    payer_bank_code = models.CharField(max_length=3, blank=True, default="")
    payer_account_sealed = models.TextField(blank=True, default="", editable=False)
    slip_reference = models.CharField(max_length=64, blank=True, default="")
    is_confirmed = models.BooleanField(
        default=True,
        db_default=True,
        help_text="No: only an uploaded statement reports this money, and it cannot leave.",
    )
    outcome = models.CharField(max_length=16, choices=Outcome.choices, default=Outcome.WAITING, blank=True)
    merchant = models.ForeignKey(Merchant, on_delete=models.PROTECT, null=True, related_name="+")
    payment = models.ForeignKey(Payment, on_delete=models.PROTECT, null=True, related_name="receipts")
    received_at = models.DateTimeField()
    judged_at = models.DateTimeField(null=True)
    resolution = models.CharField(
        max_length=12, choices=Resolution.choices, default=Resolution.OPEN, blank=True
    )
    resolved_at = models.DateTimeField(null=True)

    objects: Any = ReceiptQuerySet.as_manager()

    class Meta:
        permissions = [
            ("resolve_receipt", "Can decide what becomes of money that waits"),
            ("confirm_receipt", "Can confirm money that only a statement reports"),
        ]
        indexes = [
            models.Index(fields=["received_at"], condition=Q(outcome=""), name="receipt_not_judged"),
            models.Index(fields=["-received_at"], name="receipt_newest_first"),
            models.Index(
                fields=["received_at"], condition=Q(outcome__in=HELD, resolution=""), name="receipt_for_staff"
            ),
            models.Index(fields=["reference1", "biller_id"], name="receipt_by_reference"),
            models.Index(
                fields=["reference1", "amount", "biller_id", "bank"],
                condition=Q(kind="credit") & (~Q(source="statement") | ~Q(also_known_as="")),
                name="receipt_credit_with_bank_id",
            ),
            models.Index(fields=["bank", "paid_at"], name="receipt_by_bank_day"),
            models.Index(
                fields=["received_at"], condition=Q(is_confirmed=False), name="receipt_not_confirmed"
            ),
            models.Index(fields=["slip_reference"], condition=~Q(slip_reference=""), name="receipt_by_slip"),
        ]
        constraints = [
            models.UniqueConstraint(fields=["bank_transaction_id", "bank", "kind"], name="receipt_once"),
            models.UniqueConstraint(
                fields=["also_known_as", "bank", "kind"],
                condition=~Q(also_known_as=""),
                name="receipt_once_by_other_name",
            ),
            models.UniqueConstraint(fields=["payment"], condition=CREDITED, name="receipt_credits_once"),
            models.CheckConstraint(condition=Q(kind__in=Kind.values), name="receipt_kind_known"),
            models.CheckConstraint(condition=Q(source__in=Source.values), name="receipt_source_known"),
            models.CheckConstraint(condition=Q(outcome__in=Outcome.values), name="receipt_outcome_known"),
            models.CheckConstraint(
                condition=Q(resolution__in=Resolution.values), name="receipt_resolution_known"
            ),
            models.CheckConstraint(
                condition=Q(resolution="", resolved_at__isnull=True)
                | Q(outcome__in=HELD, resolved_at__isnull=False) & ~Q(resolution=""),
                name="receipt_resolved_if_it_waited",
            ),
            models.CheckConstraint(
                condition=~Q(resolution__in=["accepted", "attached"]) | Q(payment__isnull=False),
                name="receipt_accepted_has_payment",
            ),
            models.CheckConstraint(
                condition=Q(resolution="")
                | Q(kind="credit") & ~Q(resolution__in=["dismissed", "lost"])
                | Q(kind="reversal", resolution__in=["dismissed", "lost"]),
                name="receipt_resolution_fits_kind",
            ),
            models.CheckConstraint(condition=Q(amount__gte=0), name="receipt_amount_not_negative"),
            models.CheckConstraint(
                condition=Q(is_confirmed=True) | Q(source="statement", kind="credit"),
                name="receipt_unconfirmed_is_of_a_statement",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.bank} {self.bank_transaction_id}"

    @property
    def payer_account(self) -> str:
        sealed = self.payer_account_sealed
        return vault.open_sealed(sealed, context=self.id) if sealed else ""

    @property
    def is_credited(self) -> bool:
        """Whether a payment succeeded by it."""
        return self.outcome == Outcome.APPLIED or self.resolution in (
            Resolution.ACCEPTED,
            Resolution.ATTACHED,
        )

    @property
    def transaction_id(self) -> str:
        """As the bank calls it; of a line of a statement that no message joined, ours."""
        return self.also_known_as or self.bank_transaction_id

    @property
    def told_id(self) -> str:
        """The id by which its bank can be asked; empty where no message told one."""
        return self.also_known_as or ("" if self.source == Source.STATEMENT else self.bank_transaction_id)

    @property
    def names(self) -> list[str]:
        """All that it is called: the first of them never changes."""
        return [name for name in (self.bank_transaction_id, self.also_known_as) if name]

    def resolve(self, target: Resolution, *, now: datetime, **fields: Any) -> None:
        """Change what was decided, or raise IllegalMove. The caller holds the row lock."""
        if target not in MOVES.get(Resolution(self.resolution), set()):
            raise IllegalMove(f"{self.id}: {self.resolution or 'open'} to {target or 'open'}")
        fields |= {"resolution": target, "resolved_at": now if target else None}
        for name, value in fields.items():
            setattr(self, name, value)
        self.save(update_fields=list(fields))
