"""Payments, their transitions, and the exceptions that merchants see."""

from datetime import datetime, timedelta

from django.db import models
from django.db.models import Q
from django.db.models.functions import Coalesce, Collate, Concat, Lower, Substr
from django.utils.functional import cached_property
from django.utils.translation import gettext_lazy as _

from core import digests, ids, vault
from core.database import triggers
from core.database.columns import PublicId, PublicIdKey, RawJson, SealedText, check, known, same
from core.database.state_machines import StateMachine
from core.digests import DigestedColumn, DigestedRow
from core.thai import thaibanks
from counts.lists import ClockRule, CountedList
from merchants.models import Merchant
from payments.card_models import CardCharge, ChargeAnswer, ChargeOutcome, ChargeState
from payments.errors import PaymentNotFound
from payments.fee_terms import FeeTerms
from payments.match_results import MatchResult


class PaymentStatus(models.TextChoices):
    PENDING = "pending"  # waits for money
    SUCCEEDED = "succeeded"  # the bank or acquirer has the money
    FAILED = "failed"  # the bank or acquirer declined it
    EXPIRED = "expired"  # nobody paid in time
    REFUNDED = "refunded"  # all of it went back to the payer


class PayerMatch(models.TextChoices):
    """Whether the payer is the client whom the merchant named."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"  # a name or an account is missing or cut


class PaymentHold(models.TextChoices):
    """Why the merchant should not ship yet, by its `holds_payers`. It holds no money."""

    PAYER_DIFFERS = "payer_differs", "another person paid"
    PAYER_UNKNOWN = "payer_unknown", "the bank reports too little about who paid"


HOLD_OF: dict[str, PaymentHold] = {
    PayerMatch.NO: PaymentHold.PAYER_DIFFERS,
    PayerMatch.UNKNOWN: PaymentHold.PAYER_UNKNOWN,
}
PAID_STATUSES = (PaymentStatus.SUCCEEDED, PaymentStatus.REFUNDED)  # the money came in
OPEN_REFERENCE = "payment_open_reference_unique"
RECEIVED_AMOUNT = Coalesce(models.F("amount_received"), models.F("amount"))
# Banks' clocks are right to a few seconds, and some statements leave out the seconds ("09:05").
CLOCK_SKEW = timedelta(seconds=90)


# The payer copy changes only with the credit, and after that only from unknown to known.
ERASABLE = ("description", "client_name", "client_bank_name", "client_bank_account_sealed")
PAYER_COPY = ("payer_name", "payer_bank_code", "payer_account_sealed", "bank_reference")
ERASABLE_COPY = ("payer_name", "payer_account_sealed")
IS_FINISHED = "OLD.status <> 'pending' AND OLD.amount_refunding = 0"


class PaymentQuerySet(models.QuerySet["Payment"]):
    def of(self, merchant: Merchant) -> "PaymentQuerySet":
        return self.filter(merchant=merchant)

    def of_reference(self, reference: str) -> "PaymentQuerySet":
        """Those with exactly this reference. The index has them in small letters."""
        return self.filter(same("reference", reference), reference=reference)

    def find(self, payment_id: str, param: str | None = None) -> "Payment":
        """Raises PaymentNotFound, which names the field `param` of the request that had the id."""
        return ids.find(payment_id, "pay_", self, PaymentNotFound, param=param)

    def locked(self, payment_id: str, param: str | None = None) -> "Payment":
        """Lock and return a payment. Every change needs the lock. Raises PaymentNotFound as `find`."""
        return self.select_for_update(no_key=True).find(payment_id, param)

    def with_status(self, status: str, now: datetime) -> "PaymentQuerySet":
        """Return the payments with this status at `now`, see `Payment.status_at`."""
        if status == PaymentStatus.EXPIRED:
            return self.filter(Q(status=status) | _is_overdue(now))
        return self.filter(status=status).exclude(_is_overdue(now))

    def overdue(self, now: datetime) -> "PaymentQuerySet":
        return self.filter(_is_overdue(now))


def _is_overdue(now: datetime) -> Q:
    return Q(status=PaymentStatus.PENDING, expires_at__lte=now)


class Payment(DigestedRow, StateMachine):
    """Money that a merchant asked for. Amounts are satang. Only `payments.services` changes a row."""

    TRANSITIONS = {
        PaymentStatus.PENDING: {PaymentStatus.SUCCEEDED, PaymentStatus.FAILED, PaymentStatus.EXPIRED},
        PaymentStatus.EXPIRED: {PaymentStatus.SUCCEEDED},  # the bank may report the money after the expiry
        PaymentStatus.SUCCEEDED: {PaymentStatus.REFUNDED},
    }
    # A refund may go to this account.
    DIGESTED = DigestedColumn(
        "client_bank_account_sealed", "client_account_digest", also=("client_bank_name", "client_name")
    )

    id = PublicIdKey()
    # A trigger checks that the merchant exists (`sql/rules.sql`).
    merchant = models.ForeignKey(
        Merchant, on_delete=models.PROTECT, related_name="+", db_index=False, db_constraint=False
    )
    # Without an index: `ids.of_payment` gives the key of the row.
    qr_code_id = PublicId(null=True, verbose_name="QR code")  # null for card payments
    amount = models.BigIntegerField()  # satang
    currency = models.CharField(max_length=3)
    reference = models.CharField(max_length=35, null=True)  # noqa: DJ001 (null is "not given")
    description = models.CharField(max_length=255, null=True)  # noqa: DJ001
    metadata = RawJson(null=True)
    client_name = models.CharField(max_length=140, null=True)  # noqa: DJ001
    client_bank_name = models.CharField(max_length=140, null=True)  # noqa: DJ001
    client_bank_account_sealed = SealedText(null=True, editable=False)
    client_account_digest = digests.digest_column()
    payment_link_id = PublicId(null=True)  # the link whose visitor made the code
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField(null=True)
    # What may change comes last: the log leaves out what an old and a new row begin with.
    status = models.CharField(max_length=9, choices=PaymentStatus.choices)
    payer_name = models.CharField(max_length=140, null=True)  # noqa: DJ001
    payer_bank_code = models.CharField(max_length=3, null=True)  # noqa: DJ001
    payer_account_sealed = SealedText(null=True, editable=False)
    bank_reference = models.CharField(max_length=64, null=True)  # noqa: DJ001 (of the credit)
    # Whether the payer is the client whom the merchant named. Empty if it named nobody.
    payer_matches = models.CharField(max_length=7, choices=PayerMatch.choices, null=True)  # noqa: DJ001
    # Why the merchant should not ship yet.
    hold = models.CharField(max_length=13, choices=PaymentHold.choices, null=True)  # noqa: DJ001
    card_last4 = models.CharField(max_length=4, null=True)  # noqa: DJ001
    card_brand = models.CharField(max_length=20, null=True)  # noqa: DJ001
    failure_code = models.CharField(max_length=40, null=True)  # noqa: DJ001
    # Where the payer authorises the card charge (3-D Secure).
    authorize_uri = models.CharField(max_length=1000, null=True)  # noqa: DJ001
    amount_refunded = models.BigIntegerField(default=0)
    amount_refunding = models.BigIntegerField(default=0)  # satang of refunds in progress
    amount_received = models.BigIntegerField(null=True)  # only if it differs from the amount
    # Satang that the bank or acquirer takes, without VAT. Null until it is known. Then only a statement of
    # the bank that names another one changes it.
    fee = models.BigIntegerField(null=True)
    fee_vat = models.BigIntegerField(null=True, verbose_name="VAT of the fee")  # satang
    # Money arrived that did not match: see `exceptions`.
    has_exceptions = models.BooleanField(default=False, db_default=False)
    # While it is pending, no other such payment of the merchant has its reference.
    holds_reference = models.BooleanField(default=False, db_default=False)
    settlement_id = PublicId(null=True)  # what pays it to us; only of card payments
    updated_at = models.DateTimeField()
    # The bank's payment time, or that of the creation if the bank's cannot be.
    completed_at = models.DateTimeField(null=True)

    objects = PaymentQuerySet.as_manager()

    class Meta:
        permissions = [("lift_hold", "Can lift the hold of payments")]
        triggers = [
            triggers.Refuse(
                "keep_rows",
                triggers.DELETE,
                "only a card payment that was never tried is deleted",
                condition="NOT (OLD.status = 'pending' AND OLD.qr_code_id IS NULL)",
                is_forbidden=True,
            ),
            triggers.no_truncate("a payment is never deleted"),
            triggers.initial(
                "status",
                [PaymentStatus.PENDING, PaymentStatus.SUCCEEDED, PaymentStatus.FAILED],
                noun="a payment",
            ),
            triggers.ReadOnly(
                "what was asked for never changes",
                fields=[
                    *("id", "merchant", "amount", "currency", "created_at", "qr_code_id", "payment_link_id"),
                    *("holds_reference", "reference", "metadata", "client_account_digest", *ERASABLE),
                ],
                erasable=[*ERASABLE, *ERASABLE_COPY],
                erasable_if=IS_FINISHED,
            ),
            *(
                triggers.set_once(
                    field,
                    "a payment keeps its payer",
                    erasable_if=IS_FINISHED if field in ERASABLE_COPY else "",
                )
                for field in PAYER_COPY
            ),
            triggers.Refuse(
                "payer_compared_once",
                triggers.UPDATE,
                "a payment keeps whether its payer matches",
                condition="NEW.payer_matches IS DISTINCT FROM OLD.payer_matches "
                "AND NOT (OLD.payer_matches IS NULL AND OLD.completed_at IS NULL) "
                "AND (OLD.payer_matches = 'unknown' AND NEW.payer_matches IN ('yes', 'no')) IS NOT TRUE",
            ),
            triggers.Refuse(
                "hold_only_ends",
                triggers.UPDATE,
                "a payment is not held again",
                condition="NEW.hold IS DISTINCT FROM OLD.hold AND OLD.completed_at IS NOT NULL "
                "AND NEW.hold IS NOT NULL AND OLD.hold IS DISTINCT FROM 'payer_unknown'",
            ),
            triggers.set_once("completed_at", "a payment keeps when it was paid"),
            triggers.Refuse(
                "paid_after_creation",
                triggers.UPDATE,
                "a payment is not paid before it was created",
                condition="OLD.completed_at IS NULL AND NEW.completed_at < NEW.created_at "
                f"- interval '{CLOCK_SKEW.seconds} seconds'",
            ),
            triggers.final(
                "status",
                [PaymentStatus.PENDING],
                ["card_last4", "card_brand", "failure_code", "authorize_uri"],
                "a payment keeps how it ended",
            ),
            triggers.Refuse(
                "payer_of_paid",
                triggers.UPDATE,
                "only a payment that succeeded has a payer",
                condition="NEW.status NOT IN ('succeeded', 'refunded') AND num_nonnulls("
                f"{', '.join(f'NEW.{field}' for field in PAYER_COPY)}) > num_nonnulls("
                f"{', '.join(f'OLD.{field}' for field in PAYER_COPY)})",
            ),
            triggers.Refuse(
                "received_once",
                triggers.UPDATE,
                "the received amount of a payment never changes",
                condition="OLD.completed_at IS NOT NULL "
                "AND NEW.amount_received IS DISTINCT FROM OLD.amount_received",
            ),
            triggers.Transitions(),
        ]
        indexes = [
            # The lists of payments and codes, of all statuses or of one (`is_merged`), the console's of a
            # merchant, and searches of the newest.
            models.Index(fields=["merchant", "status", "created_at"], name="payment_filtered"),
            # The list of a reference, and searches: also by its beginning, in any case.
            models.Index(
                Collate(Lower("reference"), "C"),
                *("merchant", "created_at"),
                condition=Q(reference__isnull=False),
                name="payment_by_reference",
            ),
            # What the sweep expires next, and the overdue ones that a list of a status moves.
            models.Index(fields=["expires_at"], condition=Q(status="pending"), name="payment_next_to_expire"),
            # The list of a settlement.
            models.Index(
                fields=["settlement_id", "created_at", "id"],
                condition=Q(settlement_id__isnull=False),
                name="payment_by_settlement",
            ),
            # The list of a payment link.
            models.Index(
                fields=["payment_link_id", "created_at", "id"],
                condition=Q(payment_link_id__isnull=False),
                name="payment_by_link",
            ),
            # How many payments of a link were paid, and how many codes are open: the index alone has both.
            models.Index(
                fields=["payment_link_id", "status", "expires_at"],
                condition=Q(payment_link_id__isnull=False),
                name="payment_counted_by_link",
            ),
            # The list of a bank reference. A new payment has none, so creating one costs nothing.
            models.Index(
                fields=["bank_reference"],
                condition=Q(bank_reference__isnull=False),
                name="payment_by_bank_reference",
            ),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["merchant", "reference"],
                condition=Q(holds_reference=True, status="pending"),
                name=OPEN_REFERENCE,
            ),
            check("payment_code_has_its_id", Q(qr_code_id=Concat(models.Value("qr_"), Substr("id", 5)))),
            known("status", PaymentStatus, name="payment_status_known"),
            known("payer_matches", PayerMatch, name="payment_payer_match_known"),
            check(
                "payment_paid_has_payer_match", Q(payer_matches__isnull=True) | Q(completed_at__isnull=False)
            ),
            check(
                "payment_hold_of_its_payer",
                Q(hold__isnull=True)
                | Q(status="succeeded", payer_matches__isnull=False)
                & (
                    Q(hold="payer_differs", payer_matches="no")
                    | Q(hold="payer_unknown", payer_matches="unknown")
                ),
            ),
            check("payment_amount_in_range", Q(amount__gte=1, amount__lte=200_000_000)),
            check("payment_currency_is_thb", Q(currency="THB")),
            check(
                "payment_completed_iff_succeeded",
                Q(completed_at__isnull=False, status__in=["succeeded", "refunded"])
                | Q(completed_at__isnull=True) & ~Q(status__in=["succeeded", "refunded"]),
            ),
            check(
                "payment_fee_within_amount",
                Q(fee__isnull=True, fee_vat__isnull=True)
                | Q(fee__isnull=False, fee_vat__isnull=False, completed_at__isnull=False)
                & Q(fee__gte=0, fee_vat__gte=0)
                & Q(fee__lte=RECEIVED_AMOUNT - models.F("fee_vat")),
            ),
            check(
                "payment_refunds_within_amount",
                Q(amount_refunded__gte=0, amount_refunding__gte=0)
                & Q(amount_refunded__lte=RECEIVED_AMOUNT - models.F("amount_refunding")),
            ),
            check(
                "payment_refunds_of_what_came_in",
                Q(amount_refunded=0, amount_refunding=0)
                | Q(status="succeeded")
                | Q(status="refunded", amount_refunded=RECEIVED_AMOUNT),
            ),
        ]

    def status_at(self, now: datetime) -> PaymentStatus:
        """A pending payment is expired from `expires_at` on, also before a task has stored it.

        Payments by card have no `expires_at`. `reconciliation.matching.match_rules` says when money is late.
        """
        status, until = PaymentStatus(self.status), self.expires_at
        is_overdue = status == PaymentStatus.PENDING and until is not None and until <= now
        return PaymentStatus.EXPIRED if is_overdue else status

    def can_be_paid_at(self, paid_at: datetime) -> bool:
        """Whether the payment existed at this time of a bank, if clocks differ by at most `CLOCK_SKEW`."""
        return paid_at >= self.created_at - CLOCK_SKEW

    @property
    def received(self) -> int:
        """Satang received."""
        return self.amount if self.amount_received is None else self.amount_received

    @property
    def net(self) -> int | None:
        """Satang that the merchant gets of the received amount. None until the fee is known."""
        if self.fee is None or self.fee_vat is None:
            return None
        return self.received - self.fee - self.fee_vat

    @property
    def refundable_amount(self) -> int:
        """Satang that can still be refunded."""
        return self.received - self.amount_refunded - self.amount_refunding

    @cached_property
    def client_bank_account(self) -> str | None:
        sealed = self.client_bank_account_sealed
        return None if sealed is None else vault.open_sealed(sealed, context=self.id)

    @property
    def payer_bank_name(self) -> str | None:
        """The name of the payer's bank, or the code of a bank that we do not know."""
        bank = thaibanks.find(self.payer_bank_code) if self.payer_bank_code else None
        return bank.name if bank else self.payer_bank_code

    @property
    def payer_account(self) -> str | None:
        sealed = self.payer_account_sealed
        return None if sealed is None else vault.open_sealed(sealed, context=self.id)

    @staticmethod
    def new_id(at: datetime) -> str:
        return ids.new("pay_", at)


PAYMENTS = CountedList(
    "payments",
    Payment,
    kind_columns=("status",),
    kinds=tuple(PaymentStatus.values),
    # The expiry in SQL. A task stores it within seconds, so few rows match.
    clock_rule=ClockRule(PaymentStatus.PENDING, PaymentStatus.EXPIRED, "expires_at <= %(now)s"),
    amount_sql="amount",
    is_merged=True,
)


class ExceptionStatus(models.TextChoices):
    OPEN = "open", _("Waits for a decision")
    ACCEPTED = "accepted", _("Accepted")
    ATTACHED = "attached", _("Paid for another payment")
    SENDING_BACK = "sending_back", _("Is being sent back")
    SENT_BACK = "sent_back", _("Sent back")
    TAKEN_BACK = "taken_back", _("Taken back by the bank")
    MERGED = "merged", _("The same money as another report")
    EXCESS_OPEN = "excess_open", _("Excess waits for a decision")
    EXCESS_SENDING_BACK = "excess_sending_back", _("Excess is being sent back")
    EXCESS_SENT_BACK = "excess_sent_back", _("Excess sent back")
    EXCESS_TAKEN_BACK = "excess_taken_back", _("Excess taken back by the bank")


# Open ones wait for a decision; held money is still here; the others have ended.
OPEN_STATUSES = (ExceptionStatus.OPEN,)
HELD_STATUSES = (*OPEN_STATUSES, ExceptionStatus.SENDING_BACK)
# The rest is still here after the payment got its amount. For the merchant the exception has ended.
HELD_EXCESS_STATUSES = (ExceptionStatus.EXCESS_OPEN, ExceptionStatus.EXCESS_SENDING_BACK)


class PaymentException(models.Model):
    """Money that a bank reported for a payment and that did not match, with its resolution.

    `payments.exceptions` writes it and `Payment.has_exceptions`.
    """

    id = PublicIdKey()  # the bank transaction
    payment = models.ForeignKey(Payment, on_delete=models.PROTECT, related_name="exceptions")
    reason = models.CharField(max_length=16, choices=MatchResult.choices)
    amount = models.BigIntegerField()  # satang
    status = models.CharField(max_length=19, choices=ExceptionStatus.choices, default=ExceptionStatus.OPEN)
    reported_at = models.DateTimeField()  # when the bank reported it

    class Meta:
        ordering = ["reported_at", "id"]
        default_permissions = ("view",)

    def __str__(self) -> str:
        return str(self.id)

    @property
    def held_amount(self) -> int:
        """Satang that are here and that nobody was credited with: all of it, or the excess."""
        if self.status in HELD_EXCESS_STATUSES:
            return self.amount - self.payment.received
        return self.amount if self.status in HELD_STATUSES else 0
