"""One sentence that says how a payment stands and what to do next."""

from datetime import datetime
from urllib.parse import urlencode

from django.db.models import Q
from django.urls import reverse
from django.utils.translation import gettext as _

from console import summaries
from console.summaries import Summary
from core import failures, money
from payments.admin import SUSPENSE_STATUSES
from payments.models import Payment, PaymentException, PaymentStatus
from payments.shapes import UNMATCHED_MONEY
from reconciliation.exceptions import unmatched_money
from reconciliation.models import Inquiry, ReconciliationException
from refunds.models import Refund, RefundStatus
from webhooks.models import Delivery, DeliveryState

# A payment rarely has more than three.
MAX_REFUNDS = 20


def of(payment: Payment, now: datetime) -> Summary:
    """The most urgent of: money to decide about, refunds, money that may be for it, the status."""
    return (
        _of_exception(payment)
        or _of_refund(payment)
        or _of_returned_refund(payment)
        or _of_failed_refund(payment)
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
    url = summaries.page("reconciliation_reconciliationexception", found.id)
    if found.status in ("sending_back", "excess_sending_back"):
        amount = money.display(found.held_amount)
        text = _("%(amount)s is on its way back to the payer.") % {"amount": amount}
        return Summary(text, "info", url, _("See the return"))
    return Summary(_arrived(payment, found), "bad", url, _("Decide what happens to it"))


def _arrived(payment: Payment, found: PaymentException) -> str:
    values = {"amount": money.display(found.amount), "asked": money.display(payment.amount)}
    if found.status == "excess_open":
        held = {"amount": money.display(found.held_amount)}
        return _("Paid. The excess of %(amount)s is not sent back yet.") % held
    if payment.completed_at:
        return _("%(amount)s arrived although the payment was complete.") % values
    if found.amount == payment.amount:
        return _("%(amount)s arrived, but not in time.") % values
    return _("%(amount)s arrived for a code over %(asked)s.") % values


def _of_refund(payment: Payment) -> Summary | None:
    if not payment.amount_refunding:
        return None
    found = payment.refunds.filter(status=RefundStatus.PENDING).order_by("id").first()
    if found is None:
        return None
    values = {"amount": money.display(found.amount)}
    url, link = summaries.page("refunds_refund", found.id), _("See the refund")
    if found.awaiting_approval:
        return _of_approval(found, values)
    if not found.route:
        text = _(
            "A refund of %(amount)s waits for the customer's account: from the merchant's system, "
            "or from the customer on the claim page."
        )
        return Summary(text % values, "wait", url, link)
    text = _("A refund of %(amount)s is on its way. The bank is asked until it has arrived.")
    return Summary(text % values, "wait", url, link)


def _of_approval(refund: Refund, values: dict[str, str]) -> Summary:
    text = _("A refund of %(amount)s waits for approval by a second person.") % values
    approval = summaries.waiting_approval(refund.id)
    if approval is None:
        return Summary(text, "wait", summaries.page("refunds_refund", refund.id), _("See the refund"))
    return summaries.for_approval(text, approval.id)


def _of_returned_refund(payment: Payment) -> Summary | None:
    """A refund whose money came back, while staff have not decided about it."""
    if not payment.amount_refunded:
        return None
    returned = payment.refunds.exclude(returned_at=None).order_by("id")[:MAX_REFUNDS]
    amounts = dict(returned.values_list("pk", "amount"))
    waiting = (
        ReconciliationException.objects.filter(pk__in=list(amounts)).values_list("pk", flat=True).first()
    )
    if waiting is None:
        return None
    text = _("A refund of %(amount)s came back from the bank.") % {"amount": money.display(amounts[waiting])}
    url = summaries.page("reconciliation_reconciliationexception", waiting)
    return Summary(text, "bad", url, _("Decide what happens to it"))


def _of_failed_refund(payment: Payment) -> Summary | None:
    """The newest refund, if it failed and its money can be refunded again."""
    if payment.status != PaymentStatus.SUCCEEDED or not payment.refundable_amount:
        return None
    newest = payment.refunds.order_by("-id").first()
    if newest is None or newest.status != RefundStatus.FAILED:
        return None
    if newest.failure_code == failures.REJECTED_BY_STAFF:
        return None
    text = _("Paid, but a refund of %(amount)s failed (%(reason)s).") % {
        "amount": money.display(newest.amount),
        "reason": failures.words(newest.failure_code),
    }
    text = f"{text} {failures.advice(failures.OF_REFUNDS, newest.failure_code)}"
    return Summary(text, "bad", summaries.page("refunds_refund", newest.id), _("See the refund"))


def _of_unmatched_money(payment: Payment) -> Summary | None:
    """The payment is not paid, and may be: the page of the money names it as a candidate."""
    found = unmatched_money.find(payment, for_staff=True)
    if not found:
        return None
    url = summaries.page("reconciliation_reconciliationexception", found[0].id)
    return Summary(_(UNMATCHED_MONEY), "wait", url, _("See whether it is for this payment"))


def _of_status(payment: Payment, now: datetime) -> Summary:
    status = payment.status_at(now)
    match status:
        case PaymentStatus.PENDING:
            return _with_slip(payment, _pending(payment, now), "info")
        case PaymentStatus.SUCCEEDED:
            values = {"amount": money.display(payment.received), "at": summaries.at(payment.completed_at)}
            paid = _("Paid: %(amount)s on %(at)s.") % values
            if not payment.amount_refunded:
                rest = _("Nothing is left to do.")
                return Summary(f"{paid} {rest}", "good")
            refunded = {"amount": money.display(payment.amount_refunded)}
            part = _("%(amount)s was refunded.") % refunded
            return Summary(f"{paid} {part}", "good")
        case PaymentStatus.REFUNDED:
            values = {"amount": money.display(payment.amount_refunded)}
            return Summary(_("Refunded: all of %(amount)s went back to the payer.") % values, "good")
        case PaymentStatus.FAILED:
            text = _("Not paid: %(reason)s.") % {"reason": failures.words(payment.failure_code)}
            return Summary(f"{text} {failures.advice(failures.OF_PAYMENTS, payment.failure_code)}", "calm")
        case PaymentStatus.EXPIRED:
            text = _("Not paid: it expired on %(at)s. The customer needs a new code to pay.")
            return _with_slip(payment, text % {"at": summaries.at(payment.expires_at)}, "calm")


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
    until = (
        _("It expires on %(at)s.") % {"at": summaries.at(payment.expires_at)} if payment.expires_at else ""
    )
    due_at = Inquiry.objects.filter(payment=payment).values_list("due_at", flat=True).first()
    if due_at is not None and due_at <= now:
        unpaid = _("Not paid yet. The bank is asked again in a moment.")
    elif due_at is not None:
        unpaid = _("Not paid yet. The bank is asked again at %(at)s.") % {"at": summaries.soon(due_at, now)}
    return f"{unpaid} {until}".strip()
