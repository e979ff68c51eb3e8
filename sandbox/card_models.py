"""The sandbox bank's books as an acquirer: charges of test cards, and what went back to them."""

from django.db import models
from django.db.models import Q

from core import money
from core.columns import PublicIdKey


class SandboxCharge(models.Model):
    """Money taken from a test card, or the attempt; its id is the acquirer's charge id."""

    id = PublicIdKey()
    order_id = models.CharField(max_length=31, unique=True, help_text="The service's, which charges once.")
    amount = models.BigIntegerField(help_text="Satang.")
    brand = models.CharField(max_length=20)
    last4 = models.CharField(max_length=4)
    failure_code = models.CharField(max_length=30, blank=True, default="", help_text="Empty: it succeeded.")
    refunded = models.BigIntegerField(default=0, help_text="Satang that went back.")
    created_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(refunded__gte=0, refunded__lte=models.F("amount")), name="sandboxcharge_refunds"
            )
        ]

    def __str__(self) -> str:
        return str(self.id)

    @property
    def amount_shown(self) -> str:
        return money.display(self.amount)


class SandboxCardRefund(models.Model):
    """Money that went back to a test card."""

    id = PublicIdKey()
    order_id = models.CharField(max_length=31, unique=True, help_text="The service's, which refunds once.")
    charge = models.ForeignKey(SandboxCharge, on_delete=models.PROTECT, related_name="refunds")
    amount = models.BigIntegerField(help_text="Satang.")
    created_at = models.DateTimeField()

    def __str__(self) -> str:
        return str(self.id)
