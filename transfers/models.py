"""Orders to send money out, and how far each has come. PostgreSQL is the queue."""

from datetime import datetime

from django.db import connection, models
from django.db.models import OuterRef, Q, Subquery

from banks import TransferOrder, TransferPurpose
from core import triggers, vault
from core.columns import PublicId, PublicIdKey
from core.state_machines import StateMachine


class TransferState(models.TextChoices):
    HELD = "held"  # waits for approval: it is neither sent nor due
    QUEUED = "queued"  # may be sent, or canceled
    SUBMITTED = "submitted"  # the call is or was under way: from here on the bank is only asked
    SUCCEEDED = "succeeded"  # the money arrived
    FAILED = "failed"  # it never left
    RETURNED = "returned"  # it arrived and came back
    CANCELED = "canceled"  # before anybody was told


OPEN_STATES = (TransferState.QUEUED, TransferState.SUBMITTED)
CANCELABLE_STATES = (TransferState.HELD, TransferState.QUEUED)
UNSUBMITTED_STATES = (*CANCELABLE_STATES, TransferState.CANCELED)
UNFINISHED_STATES = (TransferState.HELD, *OPEN_STATES)


_DUE_ROUTES = """
WITH RECURSIVE known (route) AS (
    (SELECT route FROM transfers_transfer
     WHERE purpose = %(purpose)s AND state IN ('queued', 'submitted') ORDER BY route LIMIT 1)
    UNION ALL
    SELECT (SELECT t.route FROM transfers_transfer t
            WHERE t.purpose = %(purpose)s AND t.state IN ('queued', 'submitted') AND t.route > known.route
            ORDER BY t.route LIMIT 1)
    FROM known WHERE known.route IS NOT NULL
)
SELECT route FROM known WHERE EXISTS (
    SELECT 1 FROM transfers_transfer t
    WHERE t.purpose = %(purpose)s AND t.state IN ('queued', 'submitted') AND t.route = known.route
      AND t.due_at <= %(now)s
)
"""


class TransferQuerySet(models.QuerySet["Transfer"]):
    def due(self, purpose: TransferPurpose, route: str, now: datetime) -> "TransferQuerySet":
        return self.filter(purpose=purpose, route=route, state__in=OPEN_STATES, due_at__lte=now).order_by(
            "due_at"
        )

    def due_routes(self, purpose: TransferPurpose, now: datetime) -> list[str]:
        """The routes by which something is due. Reads one index entry for each route, not each transfer."""
        with connection.cursor() as cursor:
            cursor.execute(_DUE_ROUTES, {"purpose": purpose, "now": now})
            return [route for (route,) in cursor.fetchall()]

    def open_since(self, at: datetime) -> "TransferQuerySet":
        """Those ordered before `at` that did not end: they never reach their bank, or it is silent.

        Without those that are held because their merchant owes: no bank can say anything about them.
        """
        newest = TransferEvent.objects.filter(transfer=OuterRef("pk")).order_by("-pk").values("type")[:1]
        open_orders = self.filter(state__in=OPEN_STATES, created_at__lt=at).annotate(newest=Subquery(newest))
        return open_orders.exclude(state=TransferState.QUEUED, newest=TransferEventType.HELD)

    def locked(self, order_id: str) -> "Transfer":
        """The row under its lock. Owners lock the payment and their own row before."""
        return self.select_for_update(no_key=True).get(pk=order_id)


class Transfer(StateMachine):
    """Money of a refund, a withdrawal or a return on its way out; only `transfers` changes a row."""

    TRANSITIONS = {
        TransferState.HELD: {TransferState.QUEUED, TransferState.CANCELED},
        TransferState.QUEUED: {TransferState.SUBMITTED, TransferState.CANCELED},
        # Back to queued only if the bank surely has no order and was never asked about it.
        TransferState.SUBMITTED: {TransferState.SUCCEEDED, TransferState.FAILED, TransferState.QUEUED},
        TransferState.SUCCEEDED: {TransferState.RETURNED},
    }
    STATE_FIELD = "state"

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
    state = models.CharField(max_length=9, choices=TransferState.choices, default=TransferState.QUEUED)
    due_at = models.DateTimeField(help_text="When it is sent or inquired next.")
    lease_until = models.DateTimeField(null=True, help_text="A worker has it until then.")
    inquiries = models.IntegerField(default=0)
    bank_reference = models.CharField(max_length=64, blank=True, default="")
    failure_code = models.CharField(max_length=40, blank=True, default="")
    created_at = models.DateTimeField()
    submitted_at = models.DateTimeField(null=True)
    completed_at = models.DateTimeField(null=True)
    completed_by = models.CharField(
        max_length=150, blank=True, default="", help_text="Who of staff ended it, after asking the bank."
    )

    objects = TransferQuerySet.as_manager()

    class Meta:
        triggers = [
            triggers.keep_rows("a transfer is never deleted"),
            triggers.initial("state", [TransferState.HELD, TransferState.QUEUED], noun="a transfer"),
            triggers.ReadOnly(
                "what was ordered never changes",
                fields=[
                    "id",
                    "purpose",
                    "route",
                    "amount",
                    "bank_code",
                    "account_name",
                    "account_sealed",
                    "charge_id",
                    "created_at",
                    "merchant_id",
                ],
            ),
            triggers.Transitions(),
            # An inquiry means that the bank may have the order.
            triggers.Refuse(
                "inquired_is_not_sent_again",
                triggers.UPDATE,
                "an order that was inquired is not sent again",
                condition="OLD.state = 'submitted' AND NEW.state = 'queued' AND OLD.inquiries > 0",
            ),
            triggers.Refuse(
                "completed_by_person_once",
                triggers.UPDATE,
                "only the change that ends a transfer names who ended it",
                condition="NEW.completed_by <> OLD.completed_by "
                "AND (OLD.state, NEW.state) NOT IN (('submitted', 'succeeded'), ('submitted', 'failed'))",
            ),
        ]
        permissions = [("complete_transfer", "Can end transfers on which the bank is silent")]
        indexes = [
            models.Index(
                fields=["purpose", "route", "due_at"],
                condition=Q(state__in=["queued", "submitted"]),
                name="transfer_due_by_route",
            ),
            models.Index(
                fields=["created_at"],
                condition=Q(state__in=["queued", "submitted"]),
                name="transfer_open_oldest",
            ),
            models.Index(fields=["-created_at"], name="transfer_newest_first"),
            models.Index(fields=["charge_id"], condition=~Q(charge_id=""), name="transfer_of_charge"),
            models.Index(
                fields=["bank_reference"], condition=~Q(bank_reference=""), name="transfer_by_bank_reference"
            ),
        ]
        constraints = [
            models.CheckConstraint(condition=Q(state__in=TransferState.values), name="transfer_state_known"),
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
                condition=Q(state__in=UNSUBMITTED_STATES) | Q(submitted_at__isnull=False),
                name="transfer_submitted_has_time",
            ),
            models.CheckConstraint(
                condition=Q(state__in=UNFINISHED_STATES, completed_at__isnull=True)
                | ~Q(state__in=UNFINISHED_STATES) & Q(completed_at__isnull=False, lease_until__isnull=True),
                name="transfer_completed_iff_finished",
            ),
            models.CheckConstraint(
                condition=Q(state__in=["failed", "returned"]) & ~Q(failure_code="")
                | ~Q(state__in=["failed", "returned"]) & Q(failure_code=""),
                name="transfer_reason_iff_failed",
            ),
            models.CheckConstraint(
                condition=Q(completed_by="") | Q(state__in=["succeeded", "failed", "returned"]),
                name="transfer_completed_by_staff_is_finished",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.id} {self.state}"

    @property
    def account(self) -> str:
        sealed = self.account_sealed
        return vault.open_sealed(sealed, context=self.id) if sealed else ""

    @property
    def order(self) -> TransferOrder:
        """As the bank is told."""
        return TransferOrder(
            order_id=self.id,
            purpose=self.purpose,  # type: ignore[arg-type]  # the database knows no other
            amount=self.amount,
            bank_code=self.bank_code,
            account=self.account,
            account_name=self.account_name,
            charge_id=self.charge_id,
        )


class TransferContradiction(models.Model):
    """What a bank or an acquirer says of an order or a card charge that ended otherwise here. Append-only.

    It is an exception until staff end it (`reconciliation.exceptions.resolutions`).
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
    actor = models.CharField(
        max_length=160, blank=True, default="", help_text="As core.request_context has it."
    )
    request_id = models.CharField(max_length=64, blank=True, default="")
    created_at = models.DateTimeField()

    class Meta:
        triggers = [triggers.append_only("what a bank reported is never changed")]
        constraints = [
            models.UniqueConstraint(
                fields=["subject_id", "state", "answer"], name="transfercontradiction_once"
            )
        ]

    def __str__(self) -> str:
        return f"{self.subject_id}: {self.state} here, {self.answer} there"


class TransferEventType(models.TextChoices):
    """A step of a transfer: a state that it came to, or what else happened on its way."""

    HELD = "held"  # it waits for approval, or its merchant owes
    QUEUED = "queued"  # at once, or when it was approved
    SUBMITTED = "submitted"
    NOT_SENT = "not_sent"  # the bank surely never heard of it: it is told again
    INQUIRY = "inquiry"  # the bank was asked what became of it
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    RETURNED = "returned"
    CANCELED = "canceled"


class TransferEvent(models.Model):
    """What happened to a transfer and who caused it, in the commit of what it tells of. Append-only."""

    transfer = models.ForeignKey(Transfer, on_delete=models.PROTECT, related_name="events", db_index=False)
    type = models.CharField(max_length=9, choices=TransferEventType.choices)
    answer = models.CharField(
        max_length=10, blank=True, default="", help_text="By the bank that was asked, such as processing."
    )
    actor = models.CharField(
        max_length=160, blank=True, default="", help_text="As core.request_context has it."
    )
    request_id = models.CharField(max_length=64, blank=True, default="")
    created_at = models.DateTimeField()

    class Meta:
        triggers = [triggers.append_only("the history of a transfer is never changed")]
        indexes = [models.Index(fields=["transfer", "type", "created_at"], name="transferevent_of_transfer")]
        constraints = [
            models.CheckConstraint(
                condition=Q(type__in=TransferEventType.values), name="transferevent_type_known"
            ),
            models.CheckConstraint(
                condition=Q(type="inquiry") & ~Q(answer="") | ~Q(type="inquiry") & Q(answer=""),
                name="transferevent_answer_iff_inquiry",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.transfer_id} {self.type}"


class CircuitBreaker(models.Model):
    """A counterparty that does not answer; an answer deletes the row. `transfers.circuit_breakers` writes."""

    route = models.CharField(max_length=30, help_text="Such as acquirer:omise.")
    merchant_id = PublicId(blank=True, default="", help_text="For whom it is silent; empty for everybody.")
    failures = models.IntegerField(default=0, help_text="Calls in a row without an answer.")
    openings = models.IntegerField(default=0, help_text="Rests in a row.")
    first_failed_at = models.DateTimeField(help_text="The first silence.")
    open_until = models.DateTimeField(null=True, help_text="Nobody calls it before.")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["route", "merchant_id"], name="circuitbreaker_one_per_party")
        ]

    def __str__(self) -> str:
        return f"{self.route} {self.merchant_id}".strip()
