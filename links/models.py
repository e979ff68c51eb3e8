"""Payment links, and the codes that their visitors make."""

from datetime import datetime, timedelta

from django.conf import settings
from django.db import models
from django.db.models import F, Q

from core import money
from core.database import triggers
from core.database.columns import KeyedRow, PublicIdKey, RawJson, check, known
from core.database.state_machines import StateMachine
from counts.lists import CountedList
from merchants.models import Merchant
from payments.models import Payment
from qrcodes.models import MAX_EXPIRY

LONGEST_LIFE = timedelta(days=366)
MAX_PAYMENTS = 10_000
MAX_DESCRIPTION_LENGTH, MAX_REFERENCE_LENGTH = 255, 35
VISITOR_LENGTH = 22


class PaymentLinkStatus(models.TextChoices):
    ACTIVE = "active"
    COMPLETED = "completed"  # it was paid as often as it may be
    EXPIRED = "expired"
    DEACTIVATED = "deactivated"


class StoredStatus(models.TextChoices):
    """The clock and the payments decide between the others."""

    ACTIVE = "active"
    DEACTIVATED = "deactivated"


def _in_range(field: str) -> Q:
    return Q(
        **{f"{field}__isnull": False, f"{field}__gte": money.MIN_AMOUNT, f"{field}__lte": money.MAX_AMOUNT}
    )


class PaymentLink(StateMachine):
    """A page on which visitors pay. Amounts are satang: one amount, or the limits of the visitor's choice."""

    TRANSITIONS = {StoredStatus.ACTIVE: {StoredStatus.DEACTIVATED}}

    id = PublicIdKey()
    merchant = models.ForeignKey(Merchant, on_delete=models.PROTECT, related_name="+", db_index=False)
    status = models.CharField(max_length=11, choices=StoredStatus.choices, default=StoredStatus.ACTIVE)
    amount = models.BigIntegerField(null=True)  # Satang. Null if the visitor chooses it.
    amount_min = models.BigIntegerField(null=True, verbose_name="smallest amount")  # satang
    amount_max = models.BigIntegerField(null=True, verbose_name="largest amount")  # satang
    description = models.CharField(max_length=MAX_DESCRIPTION_LENGTH, null=True)  # noqa: DJ001 (not given)
    reference = models.CharField(max_length=MAX_REFERENCE_LENGTH, null=True)  # noqa: DJ001
    metadata = RawJson(null=True)
    # Null is any number.
    max_payments = models.IntegerField(null=True, verbose_name="largest number of payments")
    expiry_minutes = models.IntegerField(verbose_name="minutes of each code")
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    payments = models.IntegerField(default=0)  # How many succeeded. A trigger on payments counts.
    deactivated_at = models.DateTimeField(null=True)
    # The actor, as in core.request_context.
    deactivated_by = models.CharField(max_length=160, blank=True, default="")

    class Meta:
        permissions = [("deactivate_paymentlink", "Can deactivate payment links")]
        triggers = [
            triggers.keep_rows("a payment link is deactivated, never deleted"),
            triggers.ReadOnly(
                "a payment link never changes",
                exclude=["status", "payments", "expires_at", "deactivated_at", "deactivated_by"],
            ),
            triggers.Refuse(
                "payments_counted",
                triggers.UPDATE,
                "only a payment that succeeds is counted",
                condition=f"NEW.payments <> OLD.payments AND ({triggers.NOT_BY_TRIGGERS})",
            ),
            triggers.initial("payments", [0], noun="a payment link"),
            triggers.Refuse(
                "expires_no_later",
                triggers.UPDATE,
                "a payment link never expires later than it was to",
                condition="NEW.expires_at > OLD.expires_at",
            ),
            triggers.initial("status", [StoredStatus.ACTIVE], noun="a payment link"),
            triggers.Transitions(),
            triggers.final(
                "status",
                [StoredStatus.ACTIVE],
                ["deactivated_at", "deactivated_by"],
                "a payment link keeps who deactivated it",
            ),
        ]
        indexes = [
            # The lists of a merchant.
            models.Index(fields=["merchant", "created_at", "id"], name="paymentlink_newest_first"),
            # The list of a reference, and the search of the console.
            models.Index(
                fields=["reference", "merchant", "created_at", "id"],
                condition=Q(reference__isnull=False),
                name="paymentlink_by_reference",
            ),
        ]
        constraints = [
            known("status", StoredStatus, name="paymentlink_status_known"),
            check(
                "paymentlink_amount_or_limits",
                Q(amount_min__isnull=True, amount_max__isnull=True) & _in_range("amount")
                | Q(amount__isnull=True, amount_min__lte=F("amount_max"))
                & _in_range("amount_min")
                & _in_range("amount_max"),
            ),
            check(
                "paymentlink_max_payments_in_range",
                Q(max_payments__isnull=True) | Q(max_payments__gte=1, max_payments__lte=MAX_PAYMENTS),
            ),
            check(
                "paymentlink_expiry_minutes_in_range",
                Q(expiry_minutes__gte=1, expiry_minutes__lte=MAX_EXPIRY),
            ),
            check(
                "paymentlink_lives_a_year_at_most",
                Q(expires_at__gte=F("created_at")) & Q(expires_at__lte=F("created_at") + LONGEST_LIFE),
            ),
            check(
                "paymentlink_deactivated_at_iff_deactivated",
                Q(status=StoredStatus.ACTIVE, deactivated_at__isnull=True, deactivated_by="")
                | Q(status=StoredStatus.DEACTIVATED, deactivated_at__isnull=False),
            ),
        ]

    @property
    def url(self) -> str:
        return f"{settings.BASE_URL}/pay/links/{self.id}"

    def status_at(self, now: datetime) -> PaymentLinkStatus:
        """The status at `now`. No task stores it."""
        if self.max_payments is not None and self.payments >= self.max_payments:
            return PaymentLinkStatus.COMPLETED
        if self.status == StoredStatus.DEACTIVATED:
            return PaymentLinkStatus.DEACTIVATED
        return PaymentLinkStatus.EXPIRED if self.expires_at <= now else PaymentLinkStatus.ACTIVE


LINKS = CountedList("links", PaymentLink, kind_columns=("status",), kinds=tuple(StoredStatus.values))


class LinkCode(KeyedRow):
    """A code that a visitor of a link made. `links/sql/rules.sql` says when there can be one.

    A visitor has at most one open code: code `number` can follow only when the one before it is not open.
    """

    payment = models.OneToOneField(
        Payment, on_delete=models.PROTECT, primary_key=True, related_name="link_code"
    )
    link = models.ForeignKey(PaymentLink, on_delete=models.PROTECT, related_name="codes", db_index=False)
    visitor = models.CharField(max_length=VISITOR_LENGTH)  # A random text in the visitor's cookie
    number = models.IntegerField()  # of this visitor, from 1

    class Meta(KeyedRow.Meta):
        triggers = [triggers.append_only("who made a code of a link never changes")]
        constraints = [models.UniqueConstraint(fields=["link", "visitor", "number"], name="linkcode_once")]
