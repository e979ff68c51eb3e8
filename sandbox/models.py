"""The sandbox bank's own books: what was paid there, and the calls by which it tells."""

from typing import Any

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from core import money
from core.columns import PublicIdKey


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
    paid_at = models.DateTimeField()
    created_at = models.DateTimeField()

    def __str__(self) -> str:
        return str(self.id)

    @property
    def amount_shown(self) -> str:
        return money.display(self.amount)


class State(models.TextChoices):
    WAITING = "waiting"  # to be sent at `due_at`, for the first time or again
    DELIVERED = "delivered"  # the service said 2xx
    GIVEN_UP = "given_up"  # a day of trying


class CallQuerySet(models.QuerySet["SandboxCall"]):
    def due(self) -> "CallQuerySet":
        """By the database's clock, which all senders share."""
        return self.filter(state=State.WAITING, due_at__lte=Now()).order_by("due_at", "id")


class SandboxCall(models.Model):
    """A callback to the service. The body is fixed at birth; each sending is signed anew."""

    payment = models.ForeignKey(SandboxPayment, on_delete=models.CASCADE, related_name="calls")
    body = models.TextField()
    state = models.CharField(max_length=9, choices=State.choices, default=State.WAITING)
    due_at = models.DateTimeField(help_text="Next sending; while one runs, the end of its lease.")
    attempts = models.IntegerField(default=0)
    last_status = models.SmallIntegerField(null=True)
    last_error = models.CharField(max_length=200, blank=True, default="")
    created_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)

    objects: Any = CallQuerySet.as_manager()

    class Meta:
        indexes = [
            models.Index(fields=["due_at", "id"], condition=Q(state="waiting"), name="sandboxcall_next_due")
        ]
        constraints = [
            models.CheckConstraint(condition=Q(state__in=State.values), name="sandboxcall_state_known")
        ]

    def __str__(self) -> str:
        return f"{self.payment_id} {self.state}"
