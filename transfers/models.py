"""Orders to send money out, and how far each has come. PostgreSQL is the queue."""

from datetime import datetime
from typing import Any

from django.db import connection, models
from django.db.models import OuterRef, Q, Subquery

from banks import Order, Purpose
from core import vault
from core.columns import PublicId, PublicIdKey


class State(models.TextChoices):
    HELD = "held"  # waits for approval: it is neither sent nor due
    QUEUED = "queued"  # may be sent, or canceled
    TOLD = "told"  # the call is or was under way: from here on the bank is only asked
    SUCCEEDED = "succeeded"  # the money arrived
    FAILED = "failed"  # it never left
    RETURNED = "returned"  # it arrived and came back
    CANCELED = "canceled"  # before anybody was told


OPEN = (State.QUEUED, State.TOLD)
CANCELABLE = (State.HELD, State.QUEUED)
UNTOLD = (*CANCELABLE, State.CANCELED)
NOT_ENDED = (State.HELD, *OPEN)
# Kept by the database too. Back to queued only if the bank surely never heard of it and was never asked.
MOVES = {
    State.HELD: {State.QUEUED, State.CANCELED},
    State.QUEUED: {State.TOLD, State.CANCELED},
    State.TOLD: {State.SUCCEEDED, State.FAILED, State.QUEUED},
    State.SUCCEEDED: {State.RETURNED},
}


_DUE_ROUTES = """
WITH RECURSIVE known (route) AS (
    (SELECT route FROM transfers_transfer
     WHERE purpose = %(purpose)s AND state IN ('queued', 'told') ORDER BY route LIMIT 1)
    UNION ALL
    SELECT (SELECT t.route FROM transfers_transfer t
            WHERE t.purpose = %(purpose)s AND t.state IN ('queued', 'told') AND t.route > known.route
            ORDER BY t.route LIMIT 1)
    FROM known WHERE known.route IS NOT NULL
)
SELECT route FROM known WHERE EXISTS (
    SELECT 1 FROM transfers_transfer t
    WHERE t.purpose = %(purpose)s AND t.state IN ('queued', 'told') AND t.route = known.route
      AND t.due_at <= %(now)s
)
"""


class IllegalMove(Exception):
    """A transfer cannot go from where it is to where it was sent."""


class TransferQuerySet(models.QuerySet["Transfer"]):
    def due(self, purpose: Purpose, route: str, now: datetime) -> "TransferQuerySet":
        return self.filter(purpose=purpose, route=route, state__in=OPEN, due_at__lte=now).order_by("due_at")

    def due_routes(self, purpose: Purpose, now: datetime) -> list[str]:
        """The routes by which something is due. Reads one index entry for each route, not each transfer."""
        with connection.cursor() as cursor:
            cursor.execute(_DUE_ROUTES, {"purpose": purpose, "now": now})
            return [route for (route,) in cursor.fetchall()]

    def open_since(self, at: datetime) -> "TransferQuerySet":
        """Those ordered before `at` that did not end: they never reach their bank, or it is silent.

        Without those that are held because their merchant owes: no bank can say anything about them.
        """
        newest = Step.objects.filter(transfer=OuterRef("pk")).order_by("-pk").values("what")[:1]
        open_orders = self.filter(state__in=OPEN, created_at__lt=at).annotate(newest=Subquery(newest))
        return open_orders.exclude(state=State.QUEUED, newest=What.HELD)

    def locked(self, order_id: str) -> "Transfer":
        """The row under its lock. Owners lock the payment and their own row before."""
        return self.select_for_update(no_key=True).get(pk=order_id)


class Transfer(models.Model):
    """Money of a refund, a withdrawal or a return on its way out; only `transfers` changes a row."""

    id = PublicIdKey(help_text="Of the refund, withdrawal or return; the bank knows the order by it.")
    purpose = models.CharField(
        max_length=10,
        choices=[("refund", "Refund"), ("withdrawal", "Withdrawal"), ("return", "Return")],
    )
    merchant_id = PublicId(blank=True, default="", help_text="At whose bank; empty where it is nobody's.")
    route = models.CharField(max_length=30, help_text="By whom it is sent, such as bank:sandbox.")
    amount = models.BigIntegerField(help_text="Satang.")
    bank_code = models.CharField(max_length=3, blank=True, default="")
    account_sealed = models.TextField(blank=True, default="", editable=False)
    account_name = models.CharField(max_length=140, blank=True, default="")
    charge_id = models.CharField(
        max_length=64, blank=True, default="", help_text="Of what is taken back, such as a card's charge."
    )
    state = models.CharField(max_length=9, choices=State.choices, default=State.QUEUED)
    due_at = models.DateTimeField(help_text="When it is sent or inquired next.")
    lease_until = models.DateTimeField(null=True, help_text="A worker has it until then.")
    inquiries = models.IntegerField(default=0)
    bank_reference = models.CharField(max_length=64, blank=True, default="")
    failure_code = models.CharField(max_length=40, blank=True, default="")
    created_at = models.DateTimeField()
    told_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    settled_by = models.CharField(
        max_length=150, blank=True, default="", help_text="Who of staff ended it, after asking the bank."
    )

    objects: Any = TransferQuerySet.as_manager()

    class Meta:
        permissions = [("settle_transfer", "Can end transfers on which the bank is silent")]
        indexes = [
            models.Index(
                fields=["purpose", "route", "due_at"],
                condition=Q(state__in=["queued", "told"]),
                name="transfer_due_by_route",
            ),
            models.Index(
                fields=["created_at"], condition=Q(state__in=["queued", "told"]), name="transfer_open_oldest"
            ),
            models.Index(fields=["-created_at"], name="transfer_newest_first"),
            models.Index(fields=["charge_id"], condition=~Q(charge_id=""), name="transfer_of_charge"),
            models.Index(
                fields=["bank_reference"], condition=~Q(bank_reference=""), name="transfer_by_bank_reference"
            ),
        ]
        constraints = [
            models.CheckConstraint(condition=Q(state__in=State.values), name="transfer_state_known"),
            models.CheckConstraint(
                condition=Q(purpose__in=["refund", "withdrawal", "return"]), name="transfer_purpose_known"
            ),
            models.CheckConstraint(condition=Q(amount__gte=1), name="transfer_amount_positive"),
            models.CheckConstraint(
                condition=Q(charge_id="") & ~Q(bank_code="") & ~Q(account_sealed="")
                | ~Q(charge_id="") & Q(purpose__in=["refund", "return"], bank_code="", account_sealed=""),
                name="transfer_goes_to_an_account_or_a_card",
            ),
            models.CheckConstraint(
                condition=Q(state__in=UNTOLD) | Q(told_at__isnull=False), name="transfer_told_has_time"
            ),
            models.CheckConstraint(
                condition=Q(state__in=NOT_ENDED, ended_at__isnull=True)
                | ~Q(state__in=NOT_ENDED) & Q(ended_at__isnull=False, lease_until__isnull=True),
                name="transfer_ended_iff_over",
            ),
            models.CheckConstraint(
                condition=Q(state__in=["failed", "returned"]) & ~Q(failure_code="")
                | ~Q(state__in=["failed", "returned"]) & Q(failure_code=""),
                name="transfer_reason_iff_failed",
            ),
            models.CheckConstraint(
                condition=Q(settled_by="") | Q(state__in=["succeeded", "failed", "returned"]),
                name="transfer_settled_by_hand_is_over",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.id} {self.state}"

    def become(self, target: State, **fields: Any) -> None:
        """Change state and end the lease, or raise IllegalMove. The caller holds the row lock."""
        if target not in MOVES.get(State(self.state), set()):
            raise IllegalMove(f"{self.id}: {self.state} to {target}")
        fields = {"lease_until": None} | fields | {"state": target}
        for name, value in fields.items():
            setattr(self, name, value)
        self.save(update_fields=list(fields))

    @property
    def account(self) -> str:
        sealed = self.account_sealed
        return vault.open_sealed(sealed, context=self.id) if sealed else ""

    @property
    def order(self) -> Order:
        """As the bank is told."""
        return Order(
            order_id=self.id,
            purpose=self.purpose,  # type: ignore[arg-type]  # the database knows no other
            amount=self.amount,
            bank_code=self.bank_code,
            account=self.account,
            account_name=self.account_name,
            charge_id=self.charge_id,
        )


class Contradiction(models.Model):
    """What a bank or an acquirer says of an order or a card charge that ended otherwise here. Append-only.

    It is an exception until staff end it (`receipts.acts`).
    """

    id = PublicIdKey()
    subject_id = PublicId(help_text="The order, or the card payment.")
    merchant_id = PublicId(blank=True, default="")
    route = models.CharField(max_length=30, help_text="Who says so, such as bank:sandbox.")
    amount = models.BigIntegerField(help_text="Satang.")
    state = models.CharField(max_length=9, help_text="How it ended here.")
    answer = models.CharField(max_length=10, help_text="How it ended there.")
    answer_amount = models.BigIntegerField(
        null=True, help_text="In the smallest unit, where it moved another amount or currency."
    )
    answer_currency = models.CharField(max_length=3, blank=True, default="", db_default="")
    bank_reference = models.CharField(max_length=64, blank=True, default="")
    actor = models.CharField(max_length=160, blank=True, default="", help_text="As core.origin has it.")
    request_id = models.CharField(max_length=64, blank=True, default="")
    at = models.DateTimeField()

    objects: Any = models.Manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["subject_id", "state", "answer"], name="contradiction_once")
        ]

    def __str__(self) -> str:
        return f"{self.subject_id}: {self.state} here, {self.answer} there"


class What(models.TextChoices):
    """A step of a transfer: a state that it came to, or what else happened on its way."""

    HELD = "held"  # it waits for approval, or its merchant owes
    QUEUED = "queued"  # at once, or when it was approved
    TOLD = "told"
    UNREACHED = "unreached"  # the bank surely never heard of it: it is told again
    INQUIRY = "inquiry"  # the bank was asked what became of it
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    RETURNED = "returned"
    CANCELED = "canceled"


class Step(models.Model):
    """What happened to a transfer and who caused it, in the commit of what it tells of. Append-only."""

    transfer = models.ForeignKey(Transfer, on_delete=models.PROTECT, related_name="steps", db_index=False)
    what = models.CharField(max_length=9, choices=What.choices)
    said = models.CharField(
        max_length=10, blank=True, default="", help_text="By the bank that was asked, such as processing."
    )
    actor = models.CharField(max_length=160, blank=True, default="", help_text="As core.origin has it.")
    request_id = models.CharField(max_length=64, blank=True, default="")
    at = models.DateTimeField()

    class Meta:
        indexes = [models.Index(fields=["transfer", "what", "at"], name="step_of_transfer")]
        constraints = [
            models.CheckConstraint(condition=Q(what__in=What.values), name="step_known"),
            models.CheckConstraint(
                condition=Q(what="inquiry") & ~Q(said="") | ~Q(what="inquiry") & Q(said=""),
                name="step_said_iff_asked",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.transfer_id} {self.what}"


class CircuitBreaker(models.Model):
    """A counterparty that does not answer. An answer deletes the row. Only `transfers.breakers` writes it."""

    route = models.CharField(max_length=30, help_text="Such as acquirer:omise.")
    merchant_id = PublicId(blank=True, default="", help_text="For whom it is silent; empty for everybody.")
    silences = models.IntegerField(default=0, help_text="Calls in a row without an answer.")
    openings = models.IntegerField(default=0, help_text="Rests in a row.")
    since = models.DateTimeField(help_text="The first silence.")
    open_until = models.DateTimeField(null=True, help_text="Nobody calls it before.")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["route", "merchant_id"], name="circuitbreaker_one_per_party")
        ]

    def __str__(self) -> str:
        return f"{self.route} {self.merchant_id}".strip()
