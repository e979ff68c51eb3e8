"""One sentence that says how a payment stands and what to do next."""

from dataclasses import replace
from datetime import datetime
from urllib.parse import urlencode

from django.db.models import Q
from django.urls import reverse
from django.utils.translation import gettext as _

from console import outgoing_summary, summaries
from console.outgoing_summary import EXCEPTION
from console.summaries import Summary
from core import failures, money
from payments import explanations
from payments.admin import SUSPENSE_STATUSES
from payments.models import Payment, PaymentStatus
from reconciliation.exceptions import summaries as exceptions
from reconciliation.exceptions import unmatched_money
from reconciliation.models import Inquiry, ReconciliationException
from refunds.explanations import ALL_REFUNDED
from refunds.models import Refund, RefundStatus
from webhooks.models import Delivery, DeliveryState

# A payment rarely has more than three.
MAX_REFUNDS = 20


def of(payment: Payment, now: datetime) -> Summary:
    """The most urgent of: money to decide about, refunds, money that may be for it, the status."""
    return (
        _of_exception(payment)
        or _of_refund(payment, now)
        or _of_unmatched_money(payment)
        or _of_status(payment, now)
    )


def undelivered(payment: Payment) -> Summary | None:
    """A sentence about a webhook of the payment that has failed or waits for a replay."""
    stuck = Delivery.objects.filter(
        Q(state=DeliveryState.FAILED) | Q(state=DeliveryState.HELD), event__subject_id=payment.id
    )
    found = stuck.order_by("-created_at", "-id").first()
    if found is None:
        return None
    text = _("The merchant's server did not accept the event %(type)s.") % {"type": found.event_type}
    return Summary(
        text, "wait", summaries.page("webhooks_delivery", found.id), _("See why, and send it again")
    )


def _of_exception(payment: Payment) -> Summary | None:
    if not payment.has_exceptions:
        return None
    found = payment.exceptions.filter(status__in=SUSPENSE_STATUSES).order_by("reported_at", "id").first()
    if found is None:
        return None
    exception = exceptions.by_id([found.id])[found.id]
    text, url = f"{exception.title}. {exception.explanation}", summaries.page(EXCEPTION, found.id)
    if found.status in ("sending_back", "excess_sending_back"):
        return Summary(text, "info", url, _("See the return"))
    return Summary(text, "bad", url, _("Decide what happens to it"))


def _of_refund(payment: Payment, now: datetime) -> Summary | None:
    """What the page of the refund says, with a link to it if that has none to another page."""
    found = _urgent_refund(payment)
    if found is None:
        return None
    summary = outgoing_summary.of_refund(found, now)
    name = _("Refund of %(amount)s:") % {"amount": money.display(found.amount)}
    if not summary.url or found.status == RefundStatus.FAILED:
        url = summaries.page("refunds_refund", found.id)
        summary = replace(summary, url=url, link=_("See the refund"))
    return replace(summary, text=f"{name} {summary.text}")


def _urgent_refund(payment: Payment) -> Refund | None:
    """One under way, one that came back and waits for a decision, or the newest if it failed."""
    refunds = payment.refunds.order_by("id")
    if payment.amount_refunding and (pending := refunds.filter(status=RefundStatus.PENDING).first()):
        return pending
    if payment.amount_refunded:
        returned = {each.id: each for each in refunds.exclude(returned_at=None)[:MAX_REFUNDS]}
        if waiting := ReconciliationException.objects.filter(pk__in=list(returned)).first():
            return returned[waiting.id]
    if payment.status != PaymentStatus.SUCCEEDED or not payment.refundable_amount:
        return None
    newest = refunds.last()
    is_failed = newest is not None and newest.failure_code not in (None, failures.REJECTED_BY_STAFF)
    return newest if is_failed else None


def _of_unmatched_money(payment: Payment) -> Summary | None:
    """The payment is not paid, and may be: the page of the money names it as a candidate."""
    found = unmatched_money.find(payment, for_staff=True)
    if not found:
        return None
    url = summaries.page(EXCEPTION, found[0].id)
    return Summary(_(explanations.UNMATCHED_MONEY), "wait", url, _("See whether it is for this payment"))


def _of_status(payment: Payment, now: datetime) -> Summary:
    status = payment.status_at(now)
    match status:
        case PaymentStatus.PENDING:
            return _with_slip(payment, _pending(payment, now), "info")
        case PaymentStatus.SUCCEEDED:
            at, rest = summaries.at(payment.completed_at), _("Nothing is left to do.")
            paid = explanations.PAID_AT.format(amount=money.display(payment.received), at=at)
            if payment.amount_refunded:
                rest = _("%(amount)s was refunded.") % {"amount": money.display(payment.amount_refunded)}
            return Summary(f"{paid} {rest}", "good")
        case PaymentStatus.REFUNDED:
            text = ALL_REFUNDED.format(amount=money.display(payment.amount_refunded))
            return Summary(text, "good")
        case PaymentStatus.FAILED:
            text = explanations.NOT_PAID.format(reason=failures.words(payment.failure_code))
            return Summary(f"{text} {failures.advice(failures.OF_PAYMENTS, payment.failure_code)}", "calm")
        case PaymentStatus.EXPIRED:
            text = explanations.EXPIRED_AT.format(at=summaries.at(payment.expires_at))
            return _with_slip(payment, text, "calm")


def _with_slip(payment: Payment, text: str, tone: str) -> Summary:
    """With a link for a customer who says that they have paid."""
    if payment.qr_code_id is None:
        return Summary(text, tone)
    url = f"{reverse('admin:reconciliation_slipcheck_check')}?{urlencode({'claimed_payment_id': payment.id})}"
    return Summary(text, tone, url, _("Check the payer's slip"), "reconciliation.check_slip")


def _pending(payment: Payment, now: datetime) -> str:
    unpaid = _("Not paid yet.")
    if payment.authorize_uri:
        how = _("The customer must confirm the charge at the bank of the card.")
        return f"{unpaid} {how}"
    due_at = Inquiry.objects.filter(payment=payment).values_list("due_at", flat=True).first()
    if due_at is not None and due_at <= now:
        unpaid = _("Not paid yet. The bank is asked again in a moment.")
    elif due_at is not None:
        unpaid = _("Not paid yet. The bank is asked again at %(at)s.") % {"at": summaries.soon(due_at, now)}
    if payment.expires_at is None:
        return unpaid
    until = _("It expires on %(at)s.") % {"at": summaries.at(payment.expires_at)}
    return f"{unpaid} {until}"
