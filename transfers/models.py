"""Transfers, their history, and circuit breakers. The table of transfers is also the queue of the workers."""

from collections.abc import Collection
from datetime import datetime
from typing import Any

from django.db import models
from django.db.models import OuterRef, Q, Subquery

from banks import TransferOrder, TransferPurpose
from core import digests, vault
from core.database import rows, triggers
from core.database.columns import CausedRow, PublicId, PublicIdKey, check, known
from core.database.state_machines import LockableRows, StateMachine
from core.digests import DigestedColumn, DigestedRow
from transfers.safe_mode_models import DatabaseIdentity, DatabaseMark, SafeMode, SafeModeCause


class TransferState(models.TextChoices):
    HELD = "held"  # waits for approval: it is neither sent nor due
    QUEUED = "queued"  # can be sent, or canceled
    SUBMITTED = "submitted"  # the bank has, or may have, the order: from now on only inquiries
    SUCCEEDED = "succeeded"  # the money arrived
    FAILED = "failed"  # the money did not leave
    RETURNED = "returned"  # the money arrived and came back
    CANCELED = "canceled"  # before it was submitted


OPEN_STATES = (TransferState.QUEUED, TransferState.SUBMITTED)
CANCELABLE_STATES = (TransferState.HELD, TransferState.QUEUED)
UNSUBMITTED_STATES = (*CANCELABLE_STATES, TransferState.CANCELED)
UNFINISHED_STATES = (TransferState.HELD, *OPEN_STATES)
HAS_ACCOUNT = ~Q(account_sealed="") | ~Q(state__in=UNFINISHED_STATES)  # an erasure removes it
IS_OPEN = Q(state__in=OPEN_STATES)
MAX_NAME_LENGTH = 140  # characters of the name of an account holder
IS_FINISHED = "OLD.state NOT IN ('held', 'queued', 'submitted')"  # personal data is erased from here on

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


class TransferQuerySet(LockableRows["Transfer"]):
    def due(self, purpose: TransferPurpose, route: str, now: datetime) -> "TransferQuerySet":
        due = self.filter(purpose=purpose, route=route, state__in=OPEN_STATES, due_at__lte=now)
        return due.order_by("due_at")

    def due_routes(self, purpose: TransferPurpose, now: datetime) -> list[str]:
        """Return the routes with due transfers. Reads one index entry for each route, not each transfer."""
        found = rows.run(_DUE_ROUTES, {"purpose": purpose, "now": now}).fetchall()
        return [route for (route,) in found]

    def open_since(self, at: datetime) -> "TransferQuerySet":
        """Return transfers created before `at` that are queued or submitted.

        Transfers that wait because their merchant has a debt are left out: no bank can answer about them.
        """
        newest = TransferEvent.objects.filter(transfer=OuterRef("pk")).order_by("-pk").values("type")[:1]
        open_orders = self.filter(state__in=OPEN_STATES, created_at__lt=at).annotate(newest=Subquery(newest))
        return open_orders.exclude(state=TransferState.QUEUED, newest=TransferEventType.HELD)

    def cancelable(self, order_ids: Collection[str]) -> "TransferQuerySet":
        """Those of the orders that no bank has yet."""
        return self.filter(pk__in=order_ids, state__in=CANCELABLE_STATES)


class Transfer(DigestedRow, StateMachine):
    """An order to send money of a refund, withdrawal or return. Only this app changes a row."""

    TRANSITIONS = {
        TransferState.HELD: {TransferState.QUEUED, TransferState.CANCELED},
        TransferState.QUEUED: {TransferState.SUBMITTED, TransferState.CANCELED},
        # Back to queued only if the bank surely has no order and was never asked about it.
        TransferState.SUBMITTED: {TransferState.SUCCEEDED, TransferState.FAILED, TransferState.QUEUED},
        TransferState.SUCCEEDED: {TransferState.RETURNED},
    }
    STATE_FIELD = "state"
    DIGESTED = DigestedColumn("account_sealed", "account_digest", also=("bank_code", "account_name"))

    id = PublicIdKey()  # the id of the refund, withdrawal or return; also the id of the order at the bank
    purpose = models.CharField(
        max_length=10, choices=[("refund", "Refund"), ("withdrawal", "Withdrawal"), ("return", "Return")]
    )
    # The merchant whose bank sends it; empty if it belongs to none.
    merchant_id = PublicId(blank=True, default="")
    route = models.CharField(max_length=30)  # who sends it, such as bank:sandbox
    amount = models.BigIntegerField()  # satang
    bank_code = models.CharField(max_length=3, blank=True, default="")
    account_sealed = models.TextField(blank=True, default="", editable=False)
    account_name = models.CharField(max_length=MAX_NAME_LENGTH, blank=True, default="")
    account_digest = digests.digest_column()
    # The id of the charge that is taken back.
    charge_id = models.CharField(max_length=64, blank=True, default="")
    state = models.CharField(max_length=9, choices=TransferState.choices, default=TransferState.QUEUED)
    due_at = models.DateTimeField()  # when it is sent or inquired next
    lease_until = models.DateTimeField(null=True)  # A worker has claimed it until then
    inquiries = models.IntegerField(default=0)
    bank_reference = models.CharField(max_length=64, blank=True, default="")
    failure_code = models.CharField(max_length=40, blank=True, default="")
    created_at = models.DateTimeField()
    submitted_at = models.DateTimeField(null=True)
    completed_at = models.DateTimeField(null=True)
    # The member of staff who completed it, if any.
    completed_by = models.CharField(max_length=160, blank=True, default="")

    objects = TransferQuerySet.as_manager()

    class Meta:
        triggers = [
            triggers.keep_rows("a transfer is never deleted"),
            triggers.initial("state", [TransferState.HELD, TransferState.QUEUED], noun="a transfer"),
            triggers.ReadOnly(
                "what was ordered never changes",
                fields=[
                    *("id", "purpose", "route", "merchant_id", "amount", "bank_code"),
                    *("account_name", "account_sealed", "account_digest", "charge_id", "created_at"),
                ],
                erasable=["account_name", "account_sealed"],
                erasable_if=IS_FINISHED,
            ),
            triggers.Transitions(),
            triggers.final(
                "state",
                UNFINISHED_STATES,
                ["submitted_at", "completed_at", "bank_reference", "failure_code"],
                "a transfer keeps how it ended",
            ),
            # An inquiry means that the bank may have the order.
            triggers.Refuse(
                "inquired_is_not_sent_again",
                triggers.UPDATE,
                "an order that was inquired is not sent again",
                condition="OLD.state = 'submitted' AND NEW.state = 'queued' AND OLD.inquiries > 0",
            ),
            triggers.Refuse(
                "inquiries_grow",
                triggers.UPDATE,
                "the number of inquiries only grows",
                condition="NEW.inquiries < OLD.inquiries",
            ),
            triggers.Refuse(
                "completed_by_person_once",
                triggers.UPDATE,
                "only the change that ends a transfer names who ended it",
                condition="NEW.completed_by <> OLD.completed_by "
                "AND (OLD.state, NEW.state) NOT IN (('submitted', 'succeeded'), ('submitted', 'failed'))",
            ),
        ]
        permissions = [
            ("complete_transfer", "Can end transfers on which the bank is silent"),
            ("cancel_transfer", "Can cancel transfers that never reached their bank"),
        ]
        indexes = [
            models.Index(
                fields=["purpose", "route", "due_at"], condition=IS_OPEN, name="transfer_due_by_route"
            ),
            models.Index(fields=["created_at"], condition=IS_OPEN, name="transfer_open_oldest"),
            models.Index(
                fields=["submitted_at"],
                condition=Q(submitted_at__isnull=False),
                name="transfer_last_submitted",
            ),
            models.Index(fields=["charge_id"], condition=~Q(charge_id=""), name="transfer_of_charge"),
            models.Index(
                fields=["bank_reference"], condition=~Q(bank_reference=""), name="transfer_by_bank_reference"
            ),
        ]
        constraints = [
            known("state", TransferState, name="transfer_state_known"),
            check("transfer_purpose_known", Q(purpose__in=["refund", "withdrawal", "return"])),
            check("transfer_amount_positive", Q(amount__gte=1)),
            check(
                "transfer_goes_to_an_account_or_a_card",
                Q(charge_id="") & ~Q(bank_code="") & HAS_ACCOUNT
                | ~Q(charge_id="") & Q(purpose__in=["refund", "return"], bank_code="", account_sealed=""),
            ),
            check(
                "transfer_submitted_has_time", Q(state__in=UNSUBMITTED_STATES) | Q(submitted_at__isnull=False)
            ),
            check(
                "transfer_completed_iff_finished",
                Q(state__in=UNFINISHED_STATES, completed_at__isnull=True)
                | ~Q(state__in=UNFINISHED_STATES) & Q(completed_at__isnull=False, lease_until__isnull=True),
            ),
            check(
                "transfer_reason_iff_failed",
                Q(state__in=["failed", "returned"]) & ~Q(failure_code="")
                | ~Q(state__in=["failed", "returned"]) & Q(failure_code=""),
            ),
            check(
                "transfer_completed_by_staff_is_finished",
                Q(completed_by="") | Q(state__in=["succeeded", "failed", "returned"]),
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
        """The order as the bank gets it."""
        purpose: Any = self.purpose  # the database allows no other
        account = self.bank_code, self.account, self.account_name
        return TransferOrder(self.id, purpose, self.amount, *account, self.charge_id)


class TransferContradiction(CausedRow):
    """A bank or acquirer reports another end of an order or card charge than ours. Append-only.

    It is an exception until staff resolve it (`reconciliation.exceptions.resolutions`).
    """

    id = PublicIdKey()
    subject_id = PublicId()  # the order, or the card payment
    merchant_id = PublicId(blank=True, default="")
    route = models.CharField(max_length=30)  # who reports it, such as bank:sandbox
    amount = models.BigIntegerField()  # satang
    state = models.CharField(max_length=9)  # the final status in our record
    answer = models.CharField(max_length=10)  # the final status that the bank or acquirer reports
    # In the smallest unit, if another amount or currency was moved.
    answer_amount = models.BigIntegerField(null=True)
    answer_currency = models.CharField(max_length=3, blank=True, default="", db_default="")
    bank_reference = models.CharField(max_length=64, blank=True, default="")
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
    """A step of a transfer: a new state, or another event."""

    HELD = "held"  # it waits for approval, or for its merchant to pay a debt
    QUEUED = "queued"  # at once, or after approval
    SUBMITTED = "submitted"
    NOT_SENT = "not_sent"  # it surely did not reach the bank: it is sent again
    INQUIRY = "inquiry"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    RETURNED = "returned"
    CANCELED = "canceled"


class TransferEvent(CausedRow):
    """A step of a transfer and its actor, stored in the commit of the step. Append-only."""

    transfer = models.ForeignKey(Transfer, on_delete=models.PROTECT, related_name="events", db_index=False)
    type = models.CharField(max_length=9, choices=TransferEventType.choices)
    # The bank's answer to an inquiry, such as processing.
    answer = models.CharField(max_length=10, blank=True, default="")
    created_at = models.DateTimeField()

    class Meta:
        triggers = [triggers.append_only("the history of a transfer is never changed")]
        indexes = [models.Index(fields=["transfer", "type", "created_at"], name="transferevent_of_transfer")]
        constraints = [
            known("type", TransferEventType, name="transferevent_type_known"),
            check(
                "transferevent_answer_iff_inquiry",
                Q(type="inquiry") & ~Q(answer="") | ~Q(type="inquiry") & Q(answer=""),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.transfer_id} {self.type}"


class CircuitBreaker(models.Model):
    """A counterparty that does not answer. Its next answer deletes the row."""

    route = models.CharField(max_length=30)  # such as acquirer:omise
    merchant_id = PublicId(blank=True, default="")  # the merchant without answers; empty: all merchants
    failures = models.IntegerField(default=0)  # calls in a row without an answer
    openings = models.IntegerField(default=0)  # how often the circuit opened in a row
    first_failed_at = models.DateTimeField()  # when the first of these calls was made
    open_until = models.DateTimeField(null=True)  # no calls before this time

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["route", "merchant_id"], name="circuitbreaker_one_per_party")
        ]

    def __str__(self) -> str:
        return f"{self.route} {self.merchant_id}".strip()
