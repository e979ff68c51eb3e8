"""The sandbox bank's own records: payments, entries, orders, callbacks, card charges and refunds."""

from datetime import date, datetime, time, timedelta

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from core import money, vault
from core.clock import BANGKOK
from core.database.columns import KeyedRow, PublicIdKey, check, known

# How long a payer can authorise a charge.
AUTHORIZATION_LIFETIME = timedelta(minutes=10)
# Some faults show another fee before.
FEE_IS_FINAL_AFTER, FEE_CHANGE = timedelta(minutes=1), 100
MAX_ENTRIES = 100


class ChargeAuthorization(models.TextChoices):
    NONE = "", "not required"
    PENDING = "pending"
    AUTHORIZED = "authorized"
    REFUSED = "refused"


class SettlementFault(models.TextChoices):
    """What goes wrong with the fee of a charge, or with the transfer that pays it."""

    NONE = "", "none"
    FEE_LATE = "fee_late"  # known after FEE_IS_FINAL_AFTER
    FEE_CHANGED = "fee_changed"  # higher by FEE_CHANGE after FEE_IS_FINAL_AFTER
    VAT_ROUNDED_UP = "vat_rounded_up"
    NOT_SETTLED = "not_settled"  # no transfer pays the charge
    SHORT_TRANSFER = "short_transfer"  # its transfer is 1 satang less than its items
    TRANSFERRED_TWICE = "transferred_twice"  # a second transfer pays the same items


class SandboxChargeQuerySet(models.QuerySet["SandboxCharge"]):
    def transferable(self, at: datetime) -> "SandboxChargeQuerySet":
        """The charges that a transfer at that time pays."""
        has_succeeded = Q(failure_code="") & ~Q(authorization=ChargeAuthorization.PENDING)
        return self.filter(has_succeeded, settled_at=None, transferable_at__lte=at)


class SandboxCharge(KeyedRow):
    """A successful or failed charge of a test card. Its id is the acquirer's charge id."""

    id = PublicIdKey()
    order_id = models.CharField(max_length=31, unique=True)  # The service's id. One order is charged once.
    amount = models.BigIntegerField()  # satang
    brand = models.CharField(max_length=20)
    last4 = models.CharField(max_length=4)
    failure_code = models.CharField(max_length=30, blank=True, default="")  # empty if it succeeded
    authorization = models.CharField(
        max_length=10,
        blank=True,
        choices=ChargeAuthorization.choices,
        default=ChargeAuthorization.NONE,
        db_default="",
    )
    # Where the payer's browser goes after 3-D Secure.
    return_uri = models.TextField(blank=True, default="", db_default="")
    refunded = models.BigIntegerField(default=0)  # refunded satang
    fee = models.BigIntegerField()  # what the acquirer keeps, in satang
    fee_vat = models.BigIntegerField()  # The VAT on the fee, in satang. The acquirer keeps it too.
    fault = models.CharField(
        max_length=20, blank=True, choices=SettlementFault.choices, default=SettlementFault.NONE
    )
    transferable_at = models.DateTimeField()  # transfers pay the charge from this time on
    settled_at = models.DateTimeField(null=True)  # when a transfer paid the charge
    created_at = models.DateTimeField()

    objects = SandboxChargeQuerySet.as_manager()

    class Meta(KeyedRow.Meta):
        indexes = [
            models.Index(
                fields=["transferable_at"],
                condition=Q(settled_at=None, failure_code=""),
                name="sandboxcharge_to_settle",
            )
        ]
        constraints = [
            known("fault", SettlementFault, name="sandboxcharge_fault_known"),
            check("sandboxcharge_refunds", Q(refunded__gte=0, refunded__lte=models.F("amount"))),
            known("authorization", ChargeAuthorization, name="sandboxcharge_authorization_known"),
        ]

    @property
    def amount_shown(self) -> str:
        return money.display(self.amount)

    @property
    def final_fees(self) -> tuple[int, int]:
        """The fee and its VAT with which a transfer pays the charge."""
        return self.fee + FEE_CHANGE * (self.fault == SettlementFault.FEE_CHANGED), self.fee_vat

    def fees_at(self, now: datetime) -> tuple[int | None, int | None]:
        """The fee and its VAT as the acquirer shows them. None: it does not say them yet."""
        is_final = now >= self.created_at + FEE_IS_FINAL_AFTER
        if self.status_at(now) != "succeeded" or (self.fault == SettlementFault.FEE_LATE and not is_final):
            return None, None
        return self.final_fees if is_final else (self.fee, self.fee_vat)

    def is_authorizable_at(self, now: datetime) -> bool:
        """Whether the payer can still authorise the charge."""
        is_pending = self.authorization == ChargeAuthorization.PENDING
        return is_pending and now < self.created_at + AUTHORIZATION_LIFETIME

    def status_at(self, now: datetime) -> str:
        if self.is_authorizable_at(now):
            return "pending"
        is_abandoned = self.authorization == ChargeAuthorization.PENDING
        return "failed" if self.failure_code or is_abandoned else "succeeded"


class SandboxCardRefund(KeyedRow):
    """A refund to a test card."""

    id = PublicIdKey()
    order_id = models.CharField(max_length=31, unique=True)  # The service's id. One order is refunded once.
    charge = models.ForeignKey(SandboxCharge, on_delete=models.PROTECT, related_name="refunds")
    amount = models.BigIntegerField()  # satang
    settled_at = models.DateTimeField(null=True)  # when a transfer was reduced by it
    created_at = models.DateTimeField()

    class Meta(KeyedRow.Meta):
        indexes = [
            models.Index(
                fields=["created_at"], condition=Q(settled_at=None), name="sandboxcardrefund_to_settle"
            )
        ]


class SandboxTransfer(KeyedRow):
    """A transfer of the acquirer to the service's bank account."""

    id = PublicIdKey()
    amount = models.BigIntegerField()  # what leaves the balance at the acquirer, in satang
    fee = models.BigIntegerField()  # the price of the transfer, in satang
    fee_vat = models.BigIntegerField()  # the VAT on the price, in satang
    paid_at = models.DateTimeField()  # when it arrives
    created_at = models.DateTimeField()

    class Meta(KeyedRow.Meta):
        indexes = [models.Index(fields=["created_at", "id"], name="sandboxtransfer_by_time")]

    @property
    def net(self) -> int:
        return self.amount - self.fee - self.fee_vat


class SandboxSettledItem(KeyedRow):
    """A charge or a refund that a transfer pays. Money that the service receives is positive."""

    transfer = models.ForeignKey(SandboxTransfer, on_delete=models.CASCADE, related_name="items")
    charge = models.ForeignKey(SandboxCharge, on_delete=models.PROTECT, null=True, related_name="+")
    refund = models.ForeignKey(SandboxCardRefund, on_delete=models.PROTECT, null=True, related_name="+")
    amount = models.BigIntegerField()  # satang
    fee = models.BigIntegerField()  # satang
    fee_vat = models.BigIntegerField()  # satang

    class Meta(KeyedRow.Meta):
        constraints = [
            check(
                "sandboxsettleditem_has_one_subject",
                Q(charge__isnull=True, refund__isnull=False) | Q(charge__isnull=False, refund__isnull=True),
            )
        ]

    @property
    def net(self) -> int:
        return self.amount - self.fee - self.fee_vat


class SandboxPayment(KeyedRow):
    """A payment by a fictional payer. Its id is the bank's transaction id."""

    id = PublicIdKey()
    qr_data = models.TextField()
    scenario = models.CharField(max_length=30)
    biller_id = models.CharField(max_length=15)
    reference1 = models.CharField(max_length=20)
    reference2 = models.CharField(max_length=20, blank=True, default="")
    reference3 = models.CharField(max_length=26, blank=True, default="")
    amount = models.BigIntegerField()  # satang
    payer_name = models.CharField(max_length=140)
    payer_bank_code = models.CharField(max_length=3)
    payer_account = models.CharField(max_length=15)
    slip_reference = models.CharField(max_length=25)  # the id of the transfer on the payer's slip
    paid_at = models.DateTimeField()
    created_at = models.DateTimeField()

    class Meta(KeyedRow.Meta):
        indexes = [models.Index(fields=["biller_id", "reference1"], name="sandboxpayment_of_code")]
        constraints = [models.UniqueConstraint(fields=["slip_reference"], name="sandboxpayment_slip_once")]

    @property
    def amount_shown(self) -> str:
        return money.display(self.amount)


class SandboxEntryType(models.TextChoices):
    CREDIT = "credit"  # the biller got the money
    DECLINE = "decline"  # the payment was refused
    REVERSAL = "reversal"  # the payer got the money back


class SandboxEntryQuerySet(models.QuerySet["SandboxEntry"]):
    def of_code(
        self, *, biller_id: str, reference1: str, since: datetime, until: datetime, now: datetime
    ) -> "SandboxEntryQuerySet":
        """The oldest 100 entries of one code with a bank's time in the range, both ends included.

        An entry that was reported before its time counts from the report on, so that inquiries do not deny
        it.
        """
        found = self._booked(now).filter(payment__biller_id=biller_id, payment__reference1=reference1)
        return found.filter(booked_at__lte=until, occurred_at__gte=since)[:MAX_ENTRIES]

    def of_slip(self, *, sending_bank: str, reference: str, now: datetime) -> "SandboxEntryQuerySet":
        """The entries of the transfer on a payer's slip. A declined payment has no slip."""
        payer = {"payment__payer_bank_code": sending_bank, "payment__slip_reference": reference}
        return self._booked(now).filter(**payer).exclude(type=SandboxEntryType.DECLINE)

    def of_day(self, *, biller_id: str, day: date, now: datetime) -> "SandboxEntryQuerySet":
        """The credits and reversals of a biller on a day in Bangkok."""
        day_range = datetime.combine(day, time.min, BANGKOK), datetime.combine(day, time.max, BANGKOK)
        found = self._booked(now).filter(payment__biller_id=biller_id, occurred_at__range=day_range)
        return found.exclude(type=SandboxEntryType.DECLINE)

    def _booked(self, now: datetime) -> "SandboxEntryQuerySet":
        return self.select_related("payment").filter(booked_at__lte=now).order_by("occurred_at", "id")


class SandboxEntry(KeyedRow):
    """A booking of a payment, as callbacks, inquiries and statements report it."""

    payment = models.ForeignKey(SandboxPayment, on_delete=models.CASCADE, related_name="entries")
    type = models.CharField(max_length=8, choices=SandboxEntryType.choices)
    occurred_at = models.DateTimeField()  # the bank's time
    booked_at = models.DateTimeField()  # inquiries and statements show it from this time on

    objects = SandboxEntryQuerySet.as_manager()

    class Meta(KeyedRow.Meta):
        indexes = [models.Index(fields=["occurred_at", "id"], name="sandboxentry_by_time")]
        constraints = [
            known("type", SandboxEntryType, name="sandboxentry_type_known"),
            models.UniqueConstraint(fields=["payment", "type"], name="sandboxentry_once"),
        ]


class SandboxOrderStatus(models.TextChoices):
    PROCESSING = "processing"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    RETURNED = "returned"  # it succeeded, then the money came back


class SandboxOrder(KeyedRow):
    """An order of the service to send money. Its id is the bank's reference.

    The scenario sets all times when the order is created, so the status follows from the clock.
    """

    id = PublicIdKey()
    reference = models.CharField(max_length=64, unique=True)  # the service's id of the order
    type = models.CharField(max_length=6, choices=[("refund", "Refund"), ("payout", "Payout")])
    amount = models.BigIntegerField()  # satang
    bank_code = models.CharField(max_length=3)
    account_sealed = models.TextField(editable=False)
    account_name = models.CharField(max_length=140)
    reason = models.CharField(max_length=30, blank=True, default="")  # why it fails or is returned
    completes_at = models.DateTimeField()
    returns_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField()

    @property
    def account(self) -> str:
        return vault.open_sealed(self.account_sealed, context=self.id)

    def status_at(self, now: datetime) -> SandboxOrderStatus:
        if now < self.completes_at:
            return SandboxOrderStatus.PROCESSING
        if self.returns_at is not None:
            return SandboxOrderStatus.RETURNED if self.returns_at <= now else SandboxOrderStatus.SUCCEEDED
        return SandboxOrderStatus.FAILED if self.reason else SandboxOrderStatus.SUCCEEDED


class CallbackState(models.TextChoices):
    WAITING = "waiting"  # `due_at` is the time of the first or next attempt
    DELIVERED = "delivered"  # the service answered 2xx
    GIVEN_UP = "given_up"  # attempts failed for a day


class CallbackQuerySet(models.QuerySet["SandboxCallback"]):
    def due(self) -> "CallbackQuerySet":
        """Use the database's clock, which all workers share."""
        return self.filter(state=CallbackState.WAITING, due_at__lte=Now()).order_by("due_at", "id")


class SandboxCallback(KeyedRow):
    """A callback to the service. The body never changes; each attempt has a new signature."""

    payment = models.ForeignKey(SandboxPayment, on_delete=models.CASCADE, null=True, related_name="callbacks")
    order = models.ForeignKey(SandboxOrder, on_delete=models.CASCADE, null=True, related_name="callbacks")
    body = models.TextField()
    state = models.CharField(max_length=9, choices=CallbackState.choices, default=CallbackState.WAITING)
    due_at = models.DateTimeField()  # the next attempt; during an attempt, the end of its lease
    attempts = models.IntegerField(default=0)
    last_status = models.SmallIntegerField(null=True)
    last_error = models.CharField(max_length=200, blank=True, default="")
    created_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)

    objects = CallbackQuerySet.as_manager()

    class Meta(KeyedRow.Meta):
        indexes = [
            models.Index(
                fields=["due_at", "id"], condition=Q(state="waiting"), name="sandboxcallback_next_due"
            )
        ]
        constraints = [
            known("state", CallbackState, name="sandboxcallback_state_known"),
            check(
                "sandboxcallback_has_one_subject",
                Q(payment__isnull=True, order__isnull=False) | Q(payment__isnull=False, order__isnull=True),
            ),
        ]
