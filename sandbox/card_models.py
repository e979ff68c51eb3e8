"""The sandbox bank's books as an acquirer: charges of test cards, and what went back to them."""

from datetime import datetime, timedelta

from django.db import models
from django.db.models import Q

from core import money
from core.columns import PublicIdKey

# Nobody can authorise a charge later than this.
AUTHORIZED_WITHIN = timedelta(minutes=10)


class Authorization(models.TextChoices):
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
        max_length=10, blank=True, choices=Authorization.choices, default=Authorization.NONE, db_default=""
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
                condition=Q(authorization__in=Authorization.values), name="sandboxcharge_authorization_known"
            ),
        ]

    def __str__(self) -> str:
        return str(self.id)

    @property
    def amount_shown(self) -> str:
        return money.display(self.amount)

    def waits_at(self, now: datetime) -> bool:
        """Whether the payer may still authorise it."""
        return self.authorization == Authorization.PENDING and now < self.created_at + AUTHORIZED_WITHIN

    def status_at(self, now: datetime) -> str:
        if self.waits_at(now):
            return "pending"
        is_abandoned = self.authorization == Authorization.PENDING
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
