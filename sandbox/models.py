"""The sandbox bank's own books: what was paid there, and the calls by which it tells."""

from datetime import datetime, timedelta

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from core import money, vault
from core.columns import PublicIdKey

# Nobody can authorise a charge later than this.
AUTHORIZATION_LIFETIME = timedelta(minutes=10)


class ChargeAuthorization(models.TextChoices):
    NONE = "", "not asked for"
    PENDING = "pending"
    AUTHORIZED = "authorized"
    REFUSED = "refused"


class SandboxCharge(models.Model):
    """Money taken from a test card, or the attempt; its id is the acquirer's charge id."""

    id = PublicIdKey()
    order_id = models.CharField(max_length=31, unique=True, help_text="The service's, which charges once.")
    amount = models.BigIntegerField(help_text="Satang.")
    brand = models.CharField(max_length=20)
    last4 = models.CharField(max_length=4)
    failure_code = models.CharField(max_length=30, blank=True, default="", help_text="Empty: it succeeded.")
    authorization = models.CharField(
        max_length=10,
        blank=True,
        choices=ChargeAuthorization.choices,
        default=ChargeAuthorization.NONE,
        db_default="",
    )
    return_uri = models.TextField(
        blank=True, default="", db_default="", help_text="Where the payer's browser goes after 3-D Secure."
    )
    refunded = models.BigIntegerField(default=0, help_text="Satang that went back.")
    created_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(refunded__gte=0, refunded__lte=models.F("amount")), name="sandboxcharge_refunds"
            ),
            models.CheckConstraint(
                condition=Q(authorization__in=ChargeAuthorization.values),
                name="sandboxcharge_authorization_known",
            ),
        ]

    def __str__(self) -> str:
        return str(self.id)

    @property
    def amount_shown(self) -> str:
        return money.display(self.amount)

    def is_authorizable_at(self, now: datetime) -> bool:
        """Whether the payer may still authorise it."""
        return (
            self.authorization == ChargeAuthorization.PENDING
            and now < self.created_at + AUTHORIZATION_LIFETIME
        )

    def status_at(self, now: datetime) -> str:
        if self.is_authorizable_at(now):
            return "pending"
        is_abandoned = self.authorization == ChargeAuthorization.PENDING
        return "failed" if self.failure_code or is_abandoned else "succeeded"


class SandboxCardRefund(models.Model):
    """Money that went back to a test card."""

    id = PublicIdKey()
    order_id = models.CharField(max_length=31, unique=True, help_text="The service's, which refunds once.")
    charge = models.ForeignKey(SandboxCharge, on_delete=models.PROTECT, related_name="refunds")
    amount = models.BigIntegerField(help_text="Satang.")
    created_at = models.DateTimeField()

    def __str__(self) -> str:
        return str(self.id)


__all__ = [
    "CallbackQuerySet",
    "CallbackState",
    "SandboxCallback",
    "SandboxCardRefund",
    "SandboxCharge",
    "SandboxEntry",
    "SandboxEntryType",
    "SandboxOrder",
    "SandboxOrderStatus",
    "SandboxPayment",
]


class SandboxPayment(models.Model):
    """A transfer at the sandbox bank; its id is the bank's transaction id. All payers are fictional."""

    id = PublicIdKey()
    qr_data = models.TextField()
    scenario = models.CharField(max_length=30)
    biller_id = models.CharField(max_length=15)
    reference1 = models.CharField(max_length=20)
    reference2 = models.CharField(max_length=20, blank=True, default="")
    reference3 = models.CharField(max_length=26, blank=True, default="")
    amount = models.BigIntegerField(help_text="Satang.")
    payer_name = models.CharField(max_length=140)
    payer_bank_code = models.CharField(max_length=3)
    payer_account = models.CharField(max_length=15)
    slip_reference = models.CharField(max_length=25, help_text="What the payer's slip calls it.")
    paid_at = models.DateTimeField()
    created_at = models.DateTimeField()

    class Meta:
        indexes = [models.Index(fields=["biller_id", "reference1"], name="sandboxpayment_of_code")]
        constraints = [models.UniqueConstraint(fields=["slip_reference"], name="sandboxpayment_slip_once")]

    def __str__(self) -> str:
        return str(self.id)

    @property
    def amount_shown(self) -> str:
        return money.display(self.amount)


class SandboxEntryType(models.TextChoices):
    CREDIT = "credit"  # the money came to the biller
    DECLINE = "decline"  # it did not
    REVERSAL = "reversal"  # it went back to the payer


class SandboxEntry(models.Model):
    """A line of the bank's books about a payment. What a callback, an inquiry or a statement tells is one."""

    payment = models.ForeignKey(SandboxPayment, on_delete=models.CASCADE, related_name="entries")
    type = models.CharField(max_length=8, choices=SandboxEntryType.choices)
    occurred_at = models.DateTimeField(help_text="The bank's time of it.")
    booked_at = models.DateTimeField(help_text="From when on the books show it.")

    class Meta:
        verbose_name_plural = "sandbox entries"
        indexes = [models.Index(fields=["occurred_at", "id"], name="sandboxentry_by_time")]
        constraints = [
            models.CheckConstraint(
                condition=Q(type__in=SandboxEntryType.values), name="sandboxentry_type_known"
            ),
            models.UniqueConstraint(fields=["payment", "type"], name="sandboxentry_once"),
        ]

    def __str__(self) -> str:
        return f"{self.payment_id} {self.type}"


class SandboxOrderStatus(models.TextChoices):
    PROCESSING = "processing"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    RETURNED = "returned"  # it had succeeded, and then the money came back


class SandboxOrder(models.Model):
    """An order of the service to pay somebody; its id is the bank's reference. What happens when is fixed
    at birth, so the clock alone carries it out."""

    id = PublicIdKey()
    reference = models.CharField(max_length=64, unique=True, help_text="The service's own id of the order.")
    type = models.CharField(max_length=6, choices=[("refund", "Refund"), ("payout", "Payout")])
    amount = models.BigIntegerField(help_text="Satang.")
    bank_code = models.CharField(max_length=3)
    account_sealed = models.TextField(editable=False)
    account_name = models.CharField(max_length=140)
    reason = models.CharField(max_length=30, blank=True, default="", help_text="Why it fails or comes back.")
    completes_at = models.DateTimeField()
    returns_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField()

    def __str__(self) -> str:
        return str(self.reference)

    @property
    def account(self) -> str:
        return vault.open_sealed(self.account_sealed, context=self.id)

    @property
    def amount_shown(self) -> str:
        return money.display(self.amount)

    def status_at(self, now: datetime) -> SandboxOrderStatus:
        if now < self.completes_at:
            return SandboxOrderStatus.PROCESSING
        if self.returns_at is not None:
            return SandboxOrderStatus.RETURNED if self.returns_at <= now else SandboxOrderStatus.SUCCEEDED
        return SandboxOrderStatus.FAILED if self.reason else SandboxOrderStatus.SUCCEEDED


class CallbackState(models.TextChoices):
    WAITING = "waiting"  # to be sent at `due_at`, for the first time or again
    DELIVERED = "delivered"  # the service said 2xx
    GIVEN_UP = "given_up"  # a day of trying


class CallbackQuerySet(models.QuerySet["SandboxCallback"]):
    def due(self) -> "CallbackQuerySet":
        """By the database's clock, which all senders share."""
        return self.filter(state=CallbackState.WAITING, due_at__lte=Now()).order_by("due_at", "id")


class SandboxCallback(models.Model):
    """A callback to the service. The body is fixed at birth; each sending is signed anew."""

    payment = models.ForeignKey(SandboxPayment, on_delete=models.CASCADE, null=True, related_name="callbacks")
    order = models.ForeignKey(SandboxOrder, on_delete=models.CASCADE, null=True, related_name="callbacks")
    body = models.TextField()
    state = models.CharField(max_length=9, choices=CallbackState.choices, default=CallbackState.WAITING)
    due_at = models.DateTimeField(help_text="Next sending; while one runs, the end of its lease.")
    attempts = models.IntegerField(default=0)
    last_status = models.SmallIntegerField(null=True)
    last_error = models.CharField(max_length=200, blank=True, default="")
    created_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)

    objects = CallbackQuerySet.as_manager()

    class Meta:
        indexes = [
            models.Index(
                fields=["due_at", "id"], condition=Q(state="waiting"), name="sandboxcallback_next_due"
            )
        ]
        constraints = [
            models.CheckConstraint(
                condition=Q(state__in=CallbackState.values), name="sandboxcallback_state_known"
            ),
            models.CheckConstraint(
                condition=Q(payment__isnull=True, order__isnull=False)
                | Q(payment__isnull=False, order__isnull=True),
                name="sandboxcallback_has_one_subject",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.payment_id or self.order_id} {self.state}"
