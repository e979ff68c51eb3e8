"""What was decided about money that did not fit: by staff, or by the merchant's policy."""

from django.db.models import Exists, OuterRef, Q, QuerySet

from console.timeline.entries import Entry, Moment, Subject, Type
from payments.models import Payment
from receipts.models import Act, Deed, Notice, Verdict
from transfers.models import Contradiction

POLICY = "policy:"
SUMMARIES = {
    Deed.ACCEPTED: "The money is accepted for this payment.",
    Deed.ATTACHED: "The money is accepted for another payment than it named.",
    Deed.SENT_BACK: "The money is to be sent back to whoever paid it.",
    Deed.SENT_BACK_BY_HAND: "The money was sent back to whoever paid it, at the bank's own counter.",
    Deed.MERGED: "Two reports were one transaction of the bank: it is counted once.",
    Deed.DISMISSED: "Looked at: there is nothing to do.",
    Deed.LOST: "The bank took money back that had left already: nobody is charged for it.",
    Deed.REOPENED: "What was decided was a mistake: it waits for staff again.",
    Deed.CONFIRMED: "Somebody confirmed what only a statement had reported: the money is available.",
    Deed.BOOKED_RETURNED: "The bank never sent what it had reported as sent: the money is here again.",
    Deed.BOOKED_FAILED: "The acquirer charged something else, and it was refunded there: the payment failed.",
    Deed.KEPT: "A refund came back: its money is available again.",
}


def acts(subject: Subject) -> Moment:
    about = Q(payment_id=subject.payment.pk) | Q(subject_id__in=[*subject.receipt_ids, *subject.refund_ids])
    return _moment(subject, Act.objects.filter(about))


def dismissals(subject: Subject) -> Moment:
    """Of messages that told of the same money, or of an order, differently."""
    ours = Q(receipt__in=subject.receipt_ids) | Q(order_id__in=subject.order_ids)
    differing = Notice.objects.filter(ours, verdict=Verdict.CONFLICT)
    return _moment(subject, Act.objects.filter(subject_id__in=differing.values("pk")))


def contradictions(subject: Subject) -> Moment:
    """What staff decided about an order, or a card charge, that ended otherwise at the bank."""
    found = Contradiction.objects.filter(subject_id__in=[subject.payment.pk, *subject.order_ids])
    return _moment(subject, Act.objects.filter(subject_id__in=found.values("pk")))


def _moment(subject: Subject, acts: QuerySet[Act]) -> Moment:
    ours = Payment.objects.filter(pk=OuterRef("payment_id"), merchant=subject.payment.merchant_id)
    return Moment(acts.annotate(is_ours=Exists(ours)), "at", _told)


def _told(act: Act) -> Entry:
    """Money may be attached to a payment of somebody else: whose that is, only staff know."""
    is_policy = act.by.startswith(POLICY)
    details = {"subject_id": act.subject_id}
    if act.payment_id and act.is_ours:  # type: ignore[attr-defined]
        details["payment_id"] = act.payment_id
    return Entry(
        at=act.at,
        type=Type.POLICY_ACCEPTED if is_policy else Type(f"staff.{act.deed}"),
        summary=SUMMARIES[Deed(act.deed)],
        actor=act.by if is_policy else f"staff:{act.by}",
        request_id=act.request_id,
        details=details,
        internal={"why": act.why, "payment_id": act.payment_id or ""},
    )
