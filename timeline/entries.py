"""What the timeline is made of: a payment with what hangs on it, moments of its rows, entries for readers."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from django.db.models import Q, QuerySet

from core.clock import iso
from payments.models import Payment
from qrcodes.models import QrCode
from reconciliation.models import BankTransaction, Return
from refunds.models import Refund

CLOCK = "clock"


class TimelineEntryType(StrEnum):
    """What an entry can be about."""

    PENDING = "payment.pending"
    EXPIRED = "payment.expired"  # by the clock, whenever that was written down
    SUCCEEDED = "payment.succeeded"
    FAILED = "payment.failed"
    REFUNDED = "payment.refunded"  # all of it has gone back
    INQUIRY = "bank.inquiry"  # we asked the bank
    CARD_INQUIRY = "acquirer.inquiry"  # we asked the acquirer about a charge
    NOTIFICATION = "bank.notice"  # the bank's word, told by it or in its answer
    CONTRADICTION = "bank.contradiction"  # a bank or an acquirer reports another end than our record
    STATEMENT = "bank.statement"  # a line of a statement names the same money, or money of its own
    POLICY_ACCEPTED = "policy.accepted"  # the merchant's own policy for late money
    ACCEPTED = "staff.accepted"
    ATTACHED = "staff.attached"
    SENT_BACK = "staff.sent_back"
    SENT_BACK_BY_HAND = "staff.sent_back_by_hand"
    MERGED = "staff.merged"  # it is the same transaction as another, and counts once
    DISMISSED = "staff.dismissed"
    KEPT = "staff.kept"
    BOOKED_RETURNED = "staff.booked_returned"  # the bank never sent what it had reported as sent
    BOOKED_FAILED = "staff.booked_failed"  # the acquirer charged something else, and it was refunded there
    WRITTEN_OFF = "staff.lost"
    CONFIRMED = "staff.confirmed"  # a second person confirmed what only a statement reported
    REOPENED = "staff.reopened"  # it was dismissed, merged or booked as lost by mistake
    SLIP_CHECKED = "staff.slip_checked"  # a payer's slip was shown for it, or is of its money
    RETURN_SUBMITTED = "return.told"  # the bank has the order to send money back that did not fit
    RETURN_NOT_SENT = "return.unreached"  # the order never arrived at the bank, and is sent again
    RETURN_INQUIRY = "return.inquiry"  # we asked the bank what became of the order
    RETURN_COMPLETED = "return.completed"
    RETURN_FAILED = "return.failed"
    RETURN_CANCELED = "return.canceled"  # before a bank was told: it took it back itself, or staff ended it
    RETURN_RETURNED = "return.returned"
    REFUND_CREATED = "refund.created"
    REFUND_DESTINATION_SET = "refund.addressed"  # it waited to know where to
    REFUND_SUBMITTED = "refund.told"
    REFUND_NOT_SENT = "refund.unreached"
    REFUND_INQUIRY = "refund.inquiry"
    REFUND_COMPLETED = "refund.completed"
    REFUND_FAILED = "refund.failed"
    REFUND_CANCELED = "refund.canceled"
    REFUND_RETURNED = "refund.returned"
    APPROVAL_REQUESTED = "approval.requested"  # outgoing money waits for a second person
    APPROVAL_APPROVED = "approval.approved"
    APPROVAL_REJECTED = "approval.rejected"
    APPROVAL_CANCELED = "approval.canceled"  # what asked for it was canceled
    RESEND = "webhook.resend"  # somebody wants a webhook to be told again
    HELD = "webhook.held"  # kept for a replay: the webhook is disabled
    ATTEMPT = "webhook.attempt"
    DROPPED = "webhook.dropped"  # not sent, for the webhook was deleted or disabled


# Stored names that the API shows under another name.
PUBLIC_NAMES = {"submitted": "told", "not_sent": "unreached", "written_off": "lost"}


def public_type(prefix: str, name: str) -> TimelineEntryType:
    """Return the entry type of a stored event, such as `refund.told`."""
    return TimelineEntryType(f"{prefix}.{PUBLIC_NAMES.get(name, name)}")


@dataclass(frozen=True, slots=True)
class TimelineEntry:
    """Something that happened. `internal` is for staff alone; an empty actor or request is not known."""

    at: datetime
    type: str
    summary: str
    actor: str = ""
    request_id: str = ""
    details: dict[str, Any] = field(default_factory=dict)
    internal: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class EntrySource:
    """One kind of entry: rows of one table, the column that says when, and how a row is told."""

    rows: QuerySet[Any]
    time_column: str
    to_entry: Callable[[Any], TimelineEntry]


@dataclass(frozen=True, slots=True)
class PaymentContext:
    """A payment, what hangs on it (ids), and the instant at which it is looked at."""

    payment: Payment
    movement_ids: list[str]
    refund_ids: list[str]
    return_ids: list[str]
    now: datetime

    @property
    def order_ids(self) -> list[str]:
        """What banks may be told to send: its refunds, and money that did not fit."""
        return [*self.refund_ids, *self.return_ids]

    @classmethod
    def of(cls, payment: Payment, now: datetime) -> "PaymentContext":
        refunds = Refund.objects.filter(payment=payment).values_list("pk", flat=True)
        movements = list(BankTransaction.objects.filter(_of_payment(payment)).values_list("pk", flat=True))
        returns = Return.objects.filter(movement__in=movements).values_list("pk", flat=True)
        return cls(payment, movements, list(refunds), list(returns), now)


def _of_payment(payment: Payment) -> Q:
    """Bank transactions that are the payment's, or that gave its reference, whatever was decided about
    them.
    """
    belongs = Q(payment=payment)
    code = QrCode.objects.select_related("merchant").filter(payment=payment).first()
    if code is None:
        return belongs
    return belongs | Q(bank=code.merchant.bank, biller_id=code.biller_id, reference1=code.reference1)


def public_entry(entry: TimelineEntry) -> dict[str, Any]:
    """Without the names of staff and what they wrote."""
    return {
        "at": iso(entry.at),
        "type": entry.type,
        "actor": _public_actor(entry.actor),
        "request_id": entry.request_id or None,
        "summary": entry.summary,
        "details": entry.details,
    }


def _public_actor(actor: str) -> str | None:
    """Whoever works here is `staff`, and what the service does by itself is done by the `clock`."""
    number, _, _ = actor.partition(":")
    return {"staff": "staff", "command": "staff", "task": CLOCK, "": None}.get(number, actor)
