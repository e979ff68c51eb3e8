"""Entries of a timeline, the sources they are read from, and the payment that they are about."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from django.db.models import Q, QuerySet
from django.utils.functional import Promise

from payments.models import Payment
from qrcodes.models import QrCode
from reconciliation.exceptions import unmatched_money
from reconciliation.models import BankTransaction, Return
from refunds.models import Refund

CLOCK = "clock"
STAFF_NOTE = "staff.note"
"""The type of an entry that the API never shows, so it is not in its list."""


class TimelineEntryType(StrEnum):
    PENDING = "payment.pending"
    EXPIRED = "payment.expired"  # at `expires_at`, also if the sweep stored it later
    SUCCEEDED = "payment.succeeded"
    FAILED = "payment.failed"
    REFUNDED = "payment.refunded"  # fully
    INQUIRY = "bank.inquiry"  # we asked the bank
    CARD_INQUIRY = "acquirer.inquiry"  # we asked the acquirer about a charge
    NOTIFICATION = "bank.notification"  # in a callback, or in an answer to an inquiry
    FEE_KNOWN = "payment.fee_known"  # the bank or acquirer said later what it takes
    HOLD_LIFTED = "payment.hold_lifted"  # the merchant or staff know the payer, or the bank named the client
    CONTRADICTION = "bank.contradiction"  # a bank or acquirer contradicts our final status
    STATEMENT = "bank.statement"  # a statement line reports the money
    POLICY_ACCEPTED = "policy.accepted"  # by the merchant's policy for late money
    MERCHANT_ACCEPTED = "merchant.accepted"  # by the merchant's key
    MERCHANT_SENT_BACK = "merchant.sent_back"
    ACCEPTED = "staff.accepted"
    ATTACHED = "staff.attached"
    SENT_BACK = "staff.sent_back"
    SENT_BACK_BY_HAND = "staff.sent_back_by_hand"
    EXCESS_SENT_BACK = "staff.excess_sent_back"  # accepted with the payment's amount; the rest goes back
    MERGED = "staff.merged"  # two reports were the same bank transaction
    DISMISSED = "staff.dismissed"
    KEPT = "staff.kept"
    BOOKED_RETURNED = "staff.booked_returned"  # the bank never sent what it reported as sent
    BOOKED_FAILED = "staff.booked_failed"  # the acquirer charged and refunded another amount
    WRITTEN_OFF = "staff.written_off"
    CONFIRMED = "staff.confirmed"  # a second person confirmed money of a statement
    REOPENED = "staff.reopened"  # a dismissal, merge or write-off was a mistake
    SLIP_CHECKED = "staff.slip_checked"  # a slip was shown for the payment, or is of its money
    MERCHANT_SLIP_CHECKED = "merchant.slip_checked"
    RETURN_SUBMITTED = "return.submitted"  # the bank has, or may have, the order
    RETURN_NOT_SENT = "return.not_sent"  # the bank has no order; it is sent again
    RETURN_INQUIRY = "return.inquiry"  # we asked the bank about the order
    RETURN_COMPLETED = "return.completed"
    RETURN_FAILED = "return.failed"
    RETURN_CANCELED = "return.canceled"  # before submission: the bank reversed the money, or staff ended it
    RETURN_RETURNED = "return.returned"
    REFUND_CREATED = "refund.created"
    REFUND_DESTINATION_SET = "refund.addressed"  # the merchant named an account
    REFUND_SUBMITTED = "refund.submitted"
    REFUND_NOT_SENT = "refund.not_sent"
    REFUND_INQUIRY = "refund.inquiry"
    REFUND_COMPLETED = "refund.completed"
    REFUND_FAILED = "refund.failed"
    REFUND_CANCELED = "refund.canceled"
    REFUND_RETURNED = "refund.returned"
    APPROVAL_REQUESTED = "approval.requested"  # outgoing money waits for a second person
    APPROVAL_APPROVED = "approval.approved"
    APPROVAL_REJECTED = "approval.rejected"
    APPROVAL_CANCELED = "approval.canceled"  # its subject ended before the decision
    RESEND = "webhook.resend"  # a redelivery or replay was requested
    HELD = "webhook.held"  # kept for a replay, because the webhook is disabled
    ATTEMPT = "webhook.attempt"
    DROPPED = "webhook.dropped"  # not sent: the webhook was deleted or disabled


@dataclass(frozen=True, slots=True)
class TimelineEntry:
    """One event. Only staff see `internal`. An empty actor or request id is unknown."""

    at: datetime
    type: str
    summary: str | Promise
    actor: str = ""
    request_id: str = ""
    details: dict[str, Any] = field(default_factory=dict)
    internal: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(
        cls, row: Any, type: str, summary: str | Promise, details: Any, *, by: str = "", **more: Any
    ) -> "TimelineEntry":
        """The entry of a row, at its `entry_at`, by its `actor` and `request_id` unless they are given.

        by: the prefix of other columns with actor and request, such as `cancel_`.
        """
        missing = {"actor", "request_id"} - more.keys()
        more |= {name: getattr(row, by + name) or "" for name in missing}
        return cls(row.entry_at, type, summary, details=details, **more)


@dataclass(frozen=True, slots=True)
class EntrySource:
    """One kind of entry: rows, the column with their time, and the function that makes an entry of a row.

    The function gets the row with its time as `entry_at`.
    """

    rows: QuerySet[Any]
    time_column: str
    to_entry: Callable[[Any], TimelineEntry]


@dataclass(frozen=True, slots=True)
class PaymentContext:
    """A payment, the ids of its money, refunds and returns, of money that may be for it, and the time."""

    payment: Payment
    bank_transaction_ids: list[str]
    refund_ids: list[str]
    return_ids: list[str]
    unmatched_ids: list[str]
    now: datetime
    with_notes: bool = False
    """Of staff. No merchant reads them."""

    @property
    def order_ids(self) -> list[str]:
        """Refunds and returns: each id is also that of its transfer."""
        return [*self.refund_ids, *self.return_ids]

    @classmethod
    def of(
        cls, payment: Payment, now: datetime, *, for_staff: bool = False, with_notes: bool = False
    ) -> "PaymentContext":
        """With the bank transactions of the payment, and all others with its reference."""
        ours = Q(payment=payment)
        if (code := QrCode.objects.filter(payment=payment).first()) is not None:
            ours |= Q(bank=code.bank, biller_id=code.biller_id, reference1=code.reference1)
        refunds = Refund.objects.filter(payment=payment).values_list("pk", flat=True)
        bank_transactions = list(BankTransaction.objects.filter(ours).values_list("pk", flat=True))
        returns = Return.objects.filter(bank_transaction__in=bank_transactions).values_list("pk", flat=True)
        unmatched = [each.id for each in unmatched_money.find(payment, for_staff=for_staff)]
        return cls(payment, bank_transactions, list(refunds), list(returns), unmatched, now, with_notes)
