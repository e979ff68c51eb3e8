"""A card payment's charge at its acquirer, and how far the asking has come."""

from datetime import datetime
from typing import Any

from django.db import models
from django.db.models import Q


class ChargeState(models.TextChoices):
    ASKED = "asked"  # the call is or was under way
    WAITING = "waiting"  # the merchant knows that it is pending: from here on the acquirer is only asked
    ENDED = "ended"  # the payment says how
    REFUSED = "refused"  # nothing was tried: the payment is taken back, and this row with it


class ChargeSaid(models.TextChoices):
    """What acquirers say of a charge that they are asked about, as `banks.Said` has it."""

    SUCCEEDED = "succeeded"
    DECLINED = "declined"
    REFUSED = "refused"
    PENDING = "pending"
    UNKNOWN = "unknown"  # no answer, or none that can be read
    NOT_SENT = "not_sent"
    MISSING = "missing"


OPEN = (ChargeState.ASKED, ChargeState.WAITING)


class CardCharge(models.Model):
    """Written before the acquirer is called, so that a charge cannot be lost. The token is never stored."""

    payment = models.OneToOneField(
        "payments.Payment",
        on_delete=models.CASCADE,  # the database lets only a refused charge go, and its payment with it
        primary_key=True,
        related_name="charge",
        help_text="The acquirer knows the charge by its id.",
    )
    acquirer = models.CharField(max_length=20)
    charge_id = models.CharField(max_length=64, blank=True, default="", help_text="The acquirer's own id.")
    state = models.CharField(max_length=7, choices=ChargeState.choices, default=ChargeState.ASKED)
    due_at = models.DateTimeField(help_text="Next inquiry; while one runs, the end of its lease.")
    inquiries = models.IntegerField(default=0)
    asked_by = models.CharField(
        max_length=160, blank=True, default="", db_default="", help_text="As core.origin has it."
    )
    asked_request_id = models.CharField(max_length=64, blank=True, default="", db_default="")
    returned_at = models.DateTimeField(null=True, help_text="The payer's browser came back from 3-D Secure.")
    created_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [
            models.Index(fields=["due_at"], condition=Q(state__in=OPEN), name="cardcharge_next_inquiry"),
            models.Index(fields=["created_at"], condition=Q(state__in=OPEN), name="cardcharge_oldest_open"),
            models.Index(fields=["charge_id"], condition=~Q(charge_id=""), name="cardcharge_by_charge_id"),
        ]
        constraints = [
            models.CheckConstraint(condition=Q(state__in=ChargeState.values), name="cardcharge_state_known"),
            models.CheckConstraint(
                condition=Q(state__in=OPEN, ended_at__isnull=True)
                | ~Q(state__in=OPEN) & Q(ended_at__isnull=False),
                name="cardcharge_ended_iff_not_open",
            ),
        ]

    def __str__(self) -> str:
        return str(self.payment_id)

    @property
    def is_open(self) -> bool:
        return self.state in OPEN

    def set_state(self, state: ChargeState, **fields: Any) -> None:
        """Change the state. The caller holds the row lock; the database refuses what makes no sense."""
        self.state = state
        for name, value in fields.items():
            setattr(self, name, value)
        self.save(update_fields=["state", *fields])

    def end(self, state: ChargeState, now: datetime) -> None:
        self.set_state(state, ended_at=now)


class ChargeAnswer(models.Model):
    """One question to an acquirer about a charge and what came of it. Append-only."""

    charge = models.ForeignKey(CardCharge, on_delete=models.PROTECT, related_name="answers", db_index=False)
    said = models.CharField(max_length=9, choices=ChargeSaid.choices)
    took_ms = models.IntegerField()
    at = models.DateTimeField()
    request_id = models.CharField(max_length=64, blank=True, default="", help_text="Of the task that asked.")

    class Meta:
        indexes = [models.Index(fields=["charge", "at"], name="chargeanswer_of_charge")]
        constraints = [
            models.CheckConstraint(condition=Q(said__in=ChargeSaid.values), name="chargeanswer_said_known")
        ]

    def __str__(self) -> str:
        return f"{self.charge_id} {self.said}"
