"""What was decided about money that did not fit: by staff, or by the merchant's policy."""

from django.db.models import Exists, OuterRef, Q, QuerySet

from payments.models import Payment
from reconciliation.models import BankNotification, NotificationResult, Resolution, ResolutionType
from timeline.entries import EntrySource, PaymentContext, TimelineEntry, TimelineEntryType, public_type
from transfers.models import TransferContradiction

POLICY_PREFIX = "policy:"
RESOLUTION_TEXT = {
    ResolutionType.ACCEPTED: "The money is accepted for this payment.",
    ResolutionType.ATTACHED: "The money is accepted for another payment than the one it referred to.",
    ResolutionType.SENT_BACK: "The money will be sent back to the payer.",
    ResolutionType.SENT_BACK_BY_HAND: ("The money was sent back to the payer manually at the bank."),
    ResolutionType.MERGED: "Two reports were the same bank transaction: it is counted once.",
    ResolutionType.DISMISSED: "Dismissed: no action needed.",
    ResolutionType.WRITTEN_OFF: "Written off: the bank reversed money that had already been sent back.",
    ResolutionType.REOPENED: "Reopened for staff.",
    ResolutionType.CONFIRMED: (
        "A second person confirmed money reported only by a statement: it is available now."
    ),
    ResolutionType.BOOKED_RETURNED: (
        "The bank never sent the money it had reported as sent: recorded as returned."
    ),
    ResolutionType.BOOKED_FAILED: (
        "The acquirer charged another amount and refunded it: recorded as failed."
    ),
    ResolutionType.KEPT: "A refund was returned: its money is available again.",
}


def resolutions(context: PaymentContext) -> EntrySource:
    about = Q(payment_id=context.payment.pk) | Q(subject_id__in=[*context.movement_ids, *context.refund_ids])
    return _source(context, Resolution.objects.filter(about))


def dismissals(context: PaymentContext) -> EntrySource:
    """Of messages that told of the same money, or of an order, differently."""
    ours = Q(movement__in=context.movement_ids) | Q(order_id__in=context.order_ids)
    differing = BankNotification.objects.filter(ours, result=NotificationResult.CONFLICT)
    return _source(context, Resolution.objects.filter(subject_id__in=differing.values("pk")))


def contradictions(context: PaymentContext) -> EntrySource:
    """What staff decided about an order, or a card charge, that ended otherwise at the bank."""
    found = TransferContradiction.objects.filter(subject_id__in=[context.payment.pk, *context.order_ids])
    return _source(context, Resolution.objects.filter(subject_id__in=found.values("pk")))


def _source(context: PaymentContext, resolutions: QuerySet[Resolution]) -> EntrySource:
    ours = Payment.objects.filter(pk=OuterRef("payment_id"), merchant=context.payment.merchant_id)
    return EntrySource(resolutions.annotate(is_ours=Exists(ours)), "created_at", _resolution_entry)


def _resolution_entry(action: Resolution) -> TimelineEntry:
    """Money may be attached to a payment of somebody else: whose that is, only staff know."""
    is_policy = action.actor.startswith(POLICY_PREFIX)
    details = {"subject_id": action.subject_id}
    if action.payment_id and action.is_ours:  # type: ignore[attr-defined]
        details["payment_id"] = action.payment_id
    return TimelineEntry(
        at=action.created_at,
        type=TimelineEntryType.POLICY_ACCEPTED if is_policy else public_type("staff", action.type),
        summary=RESOLUTION_TEXT[ResolutionType(action.type)],
        actor=action.actor if is_policy else f"staff:{action.actor}",
        request_id=action.request_id,
        details=details,
        internal={"why": action.note, "payment_id": action.payment_id or ""},
    )
