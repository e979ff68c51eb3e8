"""Exceptions, how staff resolved them, and returns to payers."""

from datetime import datetime

from django.db import models
from django.db.models import Q

from core import digests
from core.database import triggers
from core.database.columns import CausedRow, PublicId, PublicIdKey, check, known
from core.database.state_machines import StateMachine
from payments import exceptions
from reconciliation.models import listing
from reconciliation.models.bank_transactions import BankTransaction, ResolutionState
from reconciliation.models.listing import ExceptionReason


class ResolutionType(models.TextChoices):
    ACCEPTED = "accepted"
    ATTACHED = "attached"
    SENT_BACK = "sent_back"  # a return was ordered at the bank
    SENT_BACK_BY_HAND = "sent_back_by_hand"  # staff returned it at the bank themselves
    EXCESS_SENT_BACK = "excess_sent_back"  # its payment succeeded with its amount; the rest goes back
    MERGED = "merged"  # a duplicate report of another bank transaction
    UNDONE = "undone"  # the import of its only report was undone
    DISMISSED = "dismissed"  # nothing to do
    KEPT = "kept"  # the bank returned a refund, and the merchant was credited
    WRITTEN_OFF = "written_off"  # a bank reversed money that had left already: the operator's loss
    BOOKED_RETURNED = "booked_returned"  # the bank never sent an order that it had reported as sent
    # A card was charged a wrong amount, and staff refunded it at the acquirer.
    BOOKED_FAILED = "booked_failed"
    REOPENED = "reopened"  # it was dismissed, merged or written off by mistake
    ACQUIRER = "acquirer"  # a transfer of an acquirer
    CONFIRMED = "confirmed"  # a second person confirmed money that only a statement reports


class Resolution(CausedRow):
    """A decision of staff or of a policy about an exception. It holds until the exception is reopened."""

    subject_id = PublicId()  # the bank transaction, notification, refund or contradiction
    type = models.CharField(max_length=17, choices=ResolutionType.choices)
    note = models.CharField(max_length=500)
    payment_id = PublicId(null=True)  # the payment of the exception
    # How often its subject had been reopened before.
    reopen_count = models.PositiveSmallIntegerField(default=0, db_default=0)
    ledger_subject_id = PublicId(null=True)  # the subject of the ledger journal of a write-off or merge
    merged_into_id = PublicId(null=True)  # the bank transaction that counts instead
    created_at = models.DateTimeField()

    class Meta:
        triggers = [triggers.append_only("a resolution is never changed")]
        indexes = [
            models.Index(fields=["subject_id"], name="resolution_by_subject"),
            models.Index(
                fields=["payment_id"], condition=Q(payment_id__isnull=False), name="resolution_by_payment"
            ),
        ]
        constraints = [
            known("type", ResolutionType, name="resolution_type_known"),
            check("resolution_has_actor_and_note", ~Q(actor="") & ~Q(note="")),
            models.UniqueConstraint(
                fields=["subject_id", "reopen_count"],
                condition=Q(
                    type__in=[
                        *("merged", "undone", "acquirer", "dismissed", "kept", "written_off"),
                        *("booked_returned", "booked_failed"),
                    ]
                ),
                name="resolution_ends_subject_once",
            ),
            check(
                "resolution_merged_into_iff_merged",
                Q(type="merged", merged_into_id__isnull=False)
                | ~Q(type="merged") & Q(merged_into_id__isnull=True),
            ),
            models.UniqueConstraint(
                fields=["subject_id", "reopen_count"],
                condition=Q(type="reopened"),
                name="resolution_reopens_subject_once",
            ),
            models.UniqueConstraint(
                fields=["subject_id"], condition=Q(type="confirmed"), name="resolution_confirms_subject_once"
            ),
            models.UniqueConstraint(
                fields=["ledger_subject_id"], condition=Q(type="written_off"), name="resolution_of_loss"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.subject_id} {self.type} by {self.actor}"

    @classmethod
    def latest(cls, subject_id: str) -> "Resolution | None":
        """The last decision about this subject."""
        return cls.objects.filter(subject_id=subject_id).order_by("id").last()


class ReturnStatus(models.TextChoices):
    PENDING = "pending"  # ordered; the bank has not answered
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELED = "canceled"  # before it was submitted to the bank


class Return(StateMachine):
    """Held money of a bank transaction that goes back to the payer: all of it, or its excess.

    The order to the bank has the same id. After a failed return the money is an exception again, and staff
    can make another return.
    """

    TRANSITIONS = {ReturnStatus.PENDING: {ReturnStatus.COMPLETED, ReturnStatus.FAILED, ReturnStatus.CANCELED}}

    id = PublicIdKey()
    bank_transaction = models.ForeignKey(BankTransaction, on_delete=models.PROTECT, related_name="returns")
    amount = models.BigIntegerField()  # satang; all of the held money
    route = models.CharField(max_length=30)  # the bank that sends it, such as bank:sandbox
    account_digest = digests.digest_column()  # of the account in the transfer
    status = models.CharField(max_length=9, choices=ReturnStatus.choices, default=ReturnStatus.PENDING)
    # Staff returned it at the bank themselves; there is no order.
    is_manual = models.BooleanField(default=False)
    bank_reference = models.CharField(max_length=64, blank=True, default="")
    failure_code = models.CharField(max_length=40, blank=True, default="")
    created_at = models.DateTimeField()
    completed_at = models.DateTimeField(null=True)
    returned_at = models.DateTimeField(null=True)  # when the money came back to us

    class Meta:
        triggers = [
            triggers.keep_rows("a return is never deleted"),
            triggers.ReadOnly(
                "the order of a return never changes",
                exclude=["status", "bank_reference", "failure_code", "completed_at", "returned_at"],
                is_forbidden=True,
            ),
            triggers.Transitions(),
            triggers.set_once("returned_at", "the time at which a return came back never changes"),
            triggers.final(
                "status",
                [ReturnStatus.PENDING],
                ["completed_at", "bank_reference", "failure_code"],
                "the end of a return never changes",
            ),
        ]
        indexes = [
            models.Index(fields=["bank_transaction"], name="return_by_bank_transaction"),
            models.Index(
                fields=["bank_reference"], condition=~Q(bank_reference=""), name="return_by_bank_reference"
            ),
        ]
        constraints = [
            known("status", ReturnStatus, name="return_status_known"),
            check("return_amount_positive", Q(amount__gte=1)),
            check(
                "return_completed_has_time",
                Q(status="completed", completed_at__isnull=False)
                | ~Q(status="completed") & Q(completed_at__isnull=True, returned_at__isnull=True),
            ),
            check(
                "return_failure_code_iff_failed",
                Q(status="failed") & ~Q(failure_code="") | ~Q(status="failed") & Q(failure_code=""),
            ),
            models.UniqueConstraint(
                fields=["bank_transaction"],
                condition=Q(status="pending") | Q(status="completed", returned_at__isnull=True),
                name="return_one_active_per_bank_transaction",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.id} {self.status}"


class Excess(StateMachine):
    """The part of an accepted credit that is more than its payment asked for. It goes back to the payer.

    What the payment received and the excess are together what arrived. The excess stays in suspense until its
    return is completed. If the return fails, the excess is an exception with the id of its bank transaction.
    """

    TRANSITIONS = {
        ResolutionState.OPEN: {
            ResolutionState.SENDING_BACK,
            ResolutionState.SENT_BACK,
            ResolutionState.TAKEN_BACK,
        },
        ResolutionState.SENDING_BACK: {
            ResolutionState.OPEN,
            ResolutionState.SENT_BACK,
            ResolutionState.TAKEN_BACK,
        },
        ResolutionState.SENT_BACK: {ResolutionState.OPEN},  # the return bounced
    }
    STATE_FIELD = "resolution_state"

    bank_transaction = models.OneToOneField(
        BankTransaction, on_delete=models.PROTECT, primary_key=True, related_name="excess"
    )
    amount = models.BigIntegerField()  # satang
    resolution_state = models.CharField(
        max_length=12, choices=ResolutionState.choices, default=ResolutionState.OPEN, blank=True
    )
    resolved_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField()

    class Meta:
        default_permissions = ()
        triggers = [
            triggers.keep_rows("an excess is never deleted"),
            triggers.ReadOnly(
                "an excess never changes", exclude=["resolution_state", "resolved_at"], is_forbidden=True
            ),
            triggers.final(
                "resolution_state",
                [ResolutionState.OPEN],
                ["resolved_at"],
                "an excess keeps when it was resolved",
                is_forbidden=True,
            ),
            triggers.initial("resolution_state", [ResolutionState.OPEN], noun="an excess"),
            triggers.Transitions(),
        ]
        constraints = [
            check("excess_amount_positive", Q(amount__gte=1)),
            check(
                "excess_state_known",
                Q(resolution_state="", resolved_at__isnull=True)
                | Q(
                    resolution_state__in=["sending_back", "sent_back", "taken_back"],
                    resolved_at__isnull=False,
                ),
            ),
        ]

    def resolve(self, target: ResolutionState, *, now: datetime) -> None:
        """Change the state, or raise IllegalTransition. The caller holds the lock of the bank transaction."""
        self.transition(target, resolved_at=now if target else None)
        self.publish_state()

    def publish_state(self) -> None:
        """Show the state on the payment, and the excess on the list of exceptions while it is open."""
        exceptions.set_status(self.bank_transaction_id, f"excess_{self.resolution_state or 'open'}")
        if self.resolution_state:
            listing.close(self.bank_transaction_id)
        else:
            listing.show([self.bank_transaction.listed(ExceptionReason.EXCESS, self.amount)])
