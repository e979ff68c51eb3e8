"""One sentence that says how a payment stands and what to do next."""

from dataclasses import dataclass
from datetime import datetime

from django.contrib.admin.utils import quote
from django.db.models import Q
from django.urls import reverse
from django.utils.timezone import localtime
from django.utils.translation import gettext as _

from core import money
from payments.admin import SUSPENSE_STATUSES
from payments.models import Payment, PaymentException, PaymentStatus
from reconciliation.models import Inquiry
from refunds.models import Refund, RefundStatus
from webhooks.models import Delivery, DeliveryState


@dataclass(frozen=True, slots=True)
class Summary:
    """The sentence, its colour, and a link to what is to do, if anything."""

    text: str
    tone: str
    url: str = ""
    link: str = ""


def of(payment: Payment, now: datetime) -> Summary:
    """The most urgent of: money to decide about, a refund that waits, the status."""
    return _of_exception(payment) or _of_refund(payment) or _of_status(payment, now)


def undelivered(payment: Payment) -> Summary | None:
    """A sentence about a webhook of the payment that has failed or waits for a replay."""
    stuck = Delivery.objects.filter(
        Q(state=DeliveryState.FAILED) | Q(state=DeliveryState.HELD), event__subject_id=payment.id
    )
    found = stuck.order_by("-created_at", "-id").first()
    if found is None:
        return None
    text = _("The merchant's server did not accept the event %(type)s.") % {"type": found.event_type}
    return Summary(text, "wait", _page("webhooks_delivery", found.id), _("See why, and send it again"))


def _of_exception(payment: Payment) -> Summary | None:
    if not payment.has_exceptions:
        return None
    found = payment.exceptions.filter(status__in=SUSPENSE_STATUSES).order_by("reported_at", "id").first()
    if found is None:
        return None
    url = _page("reconciliation_reconciliationexception", found.id)
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
    return Summary(_waiting(found), "wait", _page("refunds_refund", found.id), _("See the refund"))


def _waiting(refund: Refund) -> str:
    values = {"amount": money.display(refund.amount)}
    if refund.awaiting_approval:
        return _("A refund of %(amount)s waits for approval by a second person.") % values
    if not refund.route:
        return _("A refund of %(amount)s waits for the customer's account.") % values
    return _("A refund of %(amount)s is on its way.") % values


def _of_status(payment: Payment, now: datetime) -> Summary:
    status = payment.status_at(now)
    match status:
        case PaymentStatus.PENDING:
            return Summary(_pending(payment), "info")
        case PaymentStatus.SUCCEEDED:
            values = {"amount": money.display(payment.received), "at": _at(payment.completed_at)}
            paid = _("Paid: %(amount)s on %(at)s.") % values
            if not payment.amount_refunded:
                return Summary(paid, "good")
            refunded = {"amount": money.display(payment.amount_refunded)}
            part = _("%(amount)s was refunded.") % refunded
            return Summary(f"{paid} {part}", "good")
        case PaymentStatus.REFUNDED:
            values = {"amount": money.display(payment.amount_refunded)}
            return Summary(_("Refunded: all of %(amount)s went back to the payer.") % values, "good")
        case PaymentStatus.FAILED:
            values = {"code": payment.failure_code or "-"}
            return Summary(_("Not paid: the bank declined it (%(code)s).") % values, "calm")
        case PaymentStatus.EXPIRED:
            return Summary(_("Not paid: it expired on %(at)s.") % {"at": _at(payment.expires_at)}, "calm")


def _pending(payment: Payment) -> str:
    until = _("It expires on %(at)s.") % {"at": _at(payment.expires_at)} if payment.expires_at else ""
    due_at = Inquiry.objects.filter(payment=payment).values_list("due_at", flat=True).first()
    if due_at is not None:
        asked = _("Not paid yet. The bank is asked again at %(at)s.") % {
            "at": f"{localtime(due_at):%H:%M:%S}"
        }
        return f"{asked} {until}".strip()
    unpaid = _("Not paid yet.")
    return f"{unpaid} {until}".strip()


def _at(at: datetime | None) -> str:
    return "-" if at is None else f"{localtime(at):%Y-%m-%d %H:%M:%S}"


def _page(model: str, key: str) -> str:
    return reverse(f"admin:{model}_change", args=[quote(key)])
