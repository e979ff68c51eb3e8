"""The charge of a card payment at its acquirer, and the answers to inquiries about it."""

from django.db import models
from django.db.models import Q

from core.database import triggers
from core.database.columns import CausedRow, check, known
from core.database.state_machines import StateMachine


class ChargeState(models.TextChoices):
    SUBMITTED = "submitted"  # the acquirer has, or may have, the request
    PENDING = "pending"  # the merchant got it as pending: from now on only inquiries
    COMPLETED = "completed"  # the status of the payment is the result
    REFUSED = "refused"  # nothing was charged: the payment is deleted, and this row with it


class ChargeOutcome(models.TextChoices):
    """The acquirer's answer to an inquiry, as in `banks.ChargeResult`."""

    SUCCEEDED = "succeeded", "The card was charged"
    DECLINED = "declined", "The card was declined"
    REFUSED = "refused", "The token is invalid"
    PENDING = "pending", "Not decided yet"
    UNKNOWN = "unknown", "No usable answer"
    NOT_SENT = "not_sent", "The charge was never requested"
    MISSING = "missing", "No such charge exists"


OPEN_STATES = (ChargeState.SUBMITTED, ChargeState.PENDING)
IS_OPEN = Q(state__in=OPEN_STATES)
IS_ON_THE_WAY = Q(paid_at__isnull=False, settled_at__isnull=True)  # the acquirer has the money of these
IS_INQUIRED = IS_OPEN | Q(awaits_fee=True)  # the acquirer is asked about these


class CardCharge(StateMachine, CausedRow):
    """A charge, stored before the acquirer is called so that it cannot be lost. The token is never stored."""

    TRANSITIONS = {
        ChargeState.SUBMITTED: {ChargeState.PENDING, ChargeState.COMPLETED, ChargeState.REFUSED},
        ChargeState.PENDING: {ChargeState.COMPLETED},
    }
    STATE_FIELD = "state"

    # Its id is also the id of the order at the acquirer.
    payment = models.OneToOneField(
        "payments.Payment",
        on_delete=models.CASCADE,  # the database allows it only for a refused charge
        primary_key=True,
        related_name="charge",
    )
    acquirer = models.CharField(max_length=20)
    charge_id = models.CharField(max_length=64, blank=True, default="")  # the acquirer's own id
    state = models.CharField(max_length=9, choices=ChargeState.choices, default=ChargeState.SUBMITTED)
    due_at = models.DateTimeField()  # next inquiry; while one runs, the end of its lease
    inquiries = models.IntegerField(default=0)
    returned_at = models.DateTimeField(null=True)  # when the payer came back from 3-D Secure
    created_at = models.DateTimeField()
    completed_at = models.DateTimeField(null=True)
    paid_at = models.DateTimeField(null=True)  # when the acquirer took the money
    # The acquirer has not said what it keeps.
    awaits_fee = models.BooleanField(default=False, db_default=False)
    # Satang for the merchant that the acquirer has not paid; null if they are available.
    unsettled = models.BigIntegerField(null=True)

    settled_at = models.DateTimeField(null=True)  # when the acquirer had paid it to us

    class Meta:
        triggers = [
            triggers.Refuse(
                "keep_rows",
                triggers.DELETE,
                "only a charge that the acquirer refused is deleted",
                condition=f"OLD.state <> '{ChargeState.REFUSED}'",
                is_forbidden=True,
            ),
            triggers.no_truncate("a charge is never deleted"),
            triggers.ReadOnly(
                "what was asked for never changes",
                fields=["payment", "acquirer", "created_at", "actor", "request_id"],
            ),
            triggers.set_once("charge_id", "a charge keeps the id of its acquirer", is_text=True),
            triggers.set_once("settled_at", "a charge is settled once"),
            triggers.Transitions(),
            triggers.final(
                "state", OPEN_STATES, ["completed_at", "paid_at"], "a charge keeps when it was completed"
            ),
        ]
        indexes = [
            models.Index(fields=["due_at"], condition=IS_INQUIRED, name="cardcharge_next_inquiry"),
            models.Index(fields=["created_at"], condition=IS_OPEN, name="cardcharge_oldest_open"),
            models.Index(
                fields=["acquirer", "paid_at"], condition=IS_ON_THE_WAY, name="cardcharge_on_the_way"
            ),
            models.Index(fields=["charge_id"], condition=~Q(charge_id=""), name="cardcharge_by_charge_id"),
        ]
        constraints = [
            known("state", ChargeState, name="cardcharge_state_known"),
            check(
                "cardcharge_settled_has_nothing_left",
                Q(settled_at__isnull=True) | Q(paid_at__isnull=False, unsettled__isnull=True),
            ),
            check(
                "cardcharge_unsettled_if_completed",
                Q(unsettled__isnull=True, awaits_fee=False)
                | Q(unsettled__isnull=True, awaits_fee=True, state=ChargeState.COMPLETED)
                | Q(unsettled__gte=0, state=ChargeState.COMPLETED),
            ),
            check(
                "cardcharge_completed_iff_not_open",
                Q(state__in=OPEN_STATES, completed_at__isnull=True)
                | ~Q(state__in=OPEN_STATES) & Q(completed_at__isnull=False),
            ),
        ]

    @property
    def is_open(self) -> bool:
        return self.state in OPEN_STATES


class ChargeAnswer(models.Model):
    """The result of one inquiry about a charge. Append-only."""

    charge = models.ForeignKey(CardCharge, on_delete=models.PROTECT, related_name="answers", db_index=False)
    outcome = models.CharField(max_length=9, choices=ChargeOutcome.choices)
    duration_ms = models.IntegerField()
    created_at = models.DateTimeField()
    request_id = models.CharField(max_length=64, blank=True, default="")  # the task that made the inquiry

    class Meta:
        triggers = [triggers.append_only("an answer of an acquirer is never changed")]
        indexes = [models.Index(fields=["charge", "created_at"], name="chargeanswer_of_charge")]
        constraints = [known("outcome", ChargeOutcome, name="chargeanswer_outcome_known")]

    def __str__(self) -> str:
        return f"{self.charge_id} {self.outcome}"
