"""The sentence with which a page of money begins: how it stands, and what to do next."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from urllib.parse import urlencode

from django.contrib.admin.utils import quote
from django.db.models import Q
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.timezone import localtime
from django.utils.translation import gettext as _, gettext_lazy

from approvals import payout_accounts
from approvals.models import Approval, ApprovalKind
from approvals.payout_accounts import PayoutAccountNotAllowed, PayoutAccountTooNew
from core import clock, failures, money
from core.console.summaries import Summary
from core.failures import Failure
from ledger import services as ledger
from payments import explanations as of_payments
from payments.admin import SUSPENSE_STATUSES
from payments.models import Payment, PaymentStatus
from reconciliation.exceptions import summaries as exceptions, unmatched_money
from reconciliation.exceptions.explanations import contradicting_ends
from reconciliation.exceptions.transfer_acts import is_overdue
from reconciliation.models import (
    HELD_RESULTS,
    BankTransaction,
    BankTransactionKind,
    Inquiry,
    ReconciliationException,
)
from refunds import explanations as of_refunds
from refunds.models import Refund, RefundStatus
from transfers import circuit_breakers, explanations, history, safe_mode
from transfers.circuit_breakers import Counterparty
from transfers.models import Transfer, TransferContradiction, TransferEventType, TransferState
from webhooks.models import Delivery, DeliveryState
from withdrawals.models import Withdrawal, WithdrawalStatus

EXCEPTION, DECIDE = "reconciliation_reconciliationexception", gettext_lazy("Decide what happens to it")
# A payment rarely has more than three.
MAX_REFUNDS = 20


def _page(model: str, key: str) -> str:
    return reverse(f"admin:{model}_change", args=[quote(key)])


def _at(instant: datetime | None) -> str:
    """In Bangkok time."""
    return "-" if instant is None else clock.display(instant)


def _soon(instant: datetime, now: datetime) -> str:
    """The time alone if it is today."""
    is_today = localtime(instant).date() == localtime(now).date()
    return f"{localtime(instant):%H:%M:%S}" if is_today else _at(instant)


# --- payments


def of_payment(payment: Payment, now: datetime) -> Summary:
    """The most urgent of: money to decide about, refunds, money that may be for it, the status."""
    return (
        _of_exception(payment)
        or _of_urgent_refund(payment, now)
        or _of_unmatched_money(payment)
        or _of_payment_status(payment, now)
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
    return Summary(text, "wait", _page("webhooks_delivery", found.id), _("See why, and send it again"))


def _of_exception(payment: Payment) -> Summary | None:
    if not payment.has_exceptions:
        return None
    found = payment.exceptions.filter(status__in=SUSPENSE_STATUSES).order_by("reported_at", "id").first()
    if found is None:
        return None
    exception = exceptions.by_id([found.id])[found.id]
    text, url = f"{exception.title}. {exception.explanation}", _page(EXCEPTION, found.id)
    if found.status in ("sending_back", "excess_sending_back"):
        return Summary(text, "info", url, _("See the return"))
    return Summary(text, "bad", url, DECIDE)


def _of_urgent_refund(payment: Payment, now: datetime) -> Summary | None:
    """What the page of the refund says, with a link to it if that has none to another page."""
    found = _urgent_refund(payment)
    if found is None:
        return None
    summary = of_refund(found, now)
    name = _("Refund of %(amount)s:") % {"amount": money.display(found.amount)}
    if not summary.url or found.status == RefundStatus.FAILED:
        summary = replace(summary, url=_page("refunds_refund", found.id), link=_("See the refund"))
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
    text, url = _(of_payments.UNMATCHED_MONEY), _page(EXCEPTION, found[0].id)
    return Summary(text, "wait", url, _("See whether it is for this payment"))


def _of_payment_status(payment: Payment, now: datetime) -> Summary:
    match payment.status_at(now):
        case PaymentStatus.PENDING:
            return _with_slip(payment, _of_pending_payment(payment, now), "info")
        case PaymentStatus.SUCCEEDED:
            at, rest = _at(payment.completed_at), _("Nothing is left to do.")
            paid = of_payments.PAID_AT.format(amount=money.display(payment.received), at=at)
            if payment.amount_refunded:
                rest = _("%(amount)s was refunded.") % {"amount": money.display(payment.amount_refunded)}
            if payment.hold:
                rest = of_payments.HOLD_ADVICE.format(why=payment.get_hold_display())
            return Summary(f"{paid} {rest}", "wait" if payment.hold else "good")
        case PaymentStatus.REFUNDED if payment.refunds.exclude(reversal=None).exists():
            amount = money.display(payment.amount_refunded)
            return Summary(of_refunds.ALL_REVERSED.format(amount=amount), "bad")
        case PaymentStatus.REFUNDED:
            text = of_refunds.ALL_REFUNDED.format(amount=money.display(payment.amount_refunded))
            return Summary(text, "good")
        case PaymentStatus.FAILED:
            text = of_payments.NOT_PAID.format(reason=failures.words(payment.failure_code))
            return Summary(f"{text} {failures.advice(failures.OF_PAYMENTS, payment.failure_code)}", "calm")
        case PaymentStatus.EXPIRED:
            text = of_payments.EXPIRED_AT.format(at=_at(payment.expires_at))
            return _with_slip(payment, text, "calm")


def _with_slip(payment: Payment, text: str, tone: str) -> Summary:
    """With a link for a customer who says that they have paid."""
    if payment.qr_code_id is None:
        return Summary(text, tone)
    url = f"{reverse('admin:reconciliation_slipcheck_check')}?{urlencode({'claimed_payment_id': payment.id})}"
    return Summary(text, tone, url, _("Check the payer's slip"), "reconciliation.check_slip")


def _of_pending_payment(payment: Payment, now: datetime) -> str:
    unpaid = _("Not paid yet.")
    if payment.authorize_uri:
        how = _("The customer must confirm the charge at the bank of the card.")
        return f"{unpaid} {how}"
    due_at = Inquiry.objects.filter(payment=payment).values_list("due_at", flat=True).first()
    if due_at is not None and due_at <= now:
        unpaid = _("Not paid yet. The bank is asked again in a moment.")
    elif due_at is not None:
        unpaid = _("Not paid yet. The bank is asked again at %(at)s.") % {"at": _soon(due_at, now)}
    if payment.expires_at is None:
        return unpaid
    until = _("It expires on %(at)s.") % {"at": _at(payment.expires_at)}
    return f"{unpaid} {until}"


# --- refunds and withdrawals


def of_refund(refund: Refund, now: datetime) -> Summary:
    """The most urgent of: money to decide about, an approval that waits, the status."""
    return _of_contradiction(refund.id) or _of_approval(refund) or _of_refund_status(refund, now)


def of_withdrawal(withdrawal: Withdrawal, now: datetime) -> Summary:
    """The most urgent of: a contradiction of the bank, an approval that waits, the status."""
    urgent = _of_contradiction(withdrawal.id) or _of_approval(withdrawal)
    return urgent or _of_withdrawal_status(withdrawal, now)


def _of_contradiction(subject_id: str) -> Summary | None:
    """The bank reports another end than ours, and staff have not decided about it."""
    reported = TransferContradiction.objects.filter(subject_id=subject_id).in_bulk()
    open_ones = ReconciliationException.objects.filter(pk__in=list(reported)).order_by("opened_at", "pk")
    if not reported or (waiting := open_ones.first()) is None:
        return None
    return Summary(contradicting_ends(reported[waiting.pk]), "bad", _page(EXCEPTION, waiting.pk), DECIDE)


def _of_approval(row: Refund | Withdrawal) -> Summary | None:
    approval = Approval.objects.waiting().filter(subject_id=row.id).first()
    if approval is None:
        return None
    is_ended_by_staff = approval.kind == ApprovalKind.NEVER_ARRIVED
    text = explanations.NEVER_ARRIVED if is_ended_by_staff else explanations.NEEDS_APPROVAL
    sentence, url = text.format(amount=money.display(row.amount)), _page("approvals_approval", approval.id)
    return Summary(sentence, "wait", url, _("Approve or reject it"), "approvals.view_approval")


def _of_refund_status(refund: Refund, now: datetime) -> Summary:
    match RefundStatus(refund.status):
        case RefundStatus.PENDING if not refund.route:
            return Summary(of_refunds.WAITS_FOR_ACCOUNT, "wait")
        case RefundStatus.PENDING:
            return _of_order(refund.id, now)
        case RefundStatus.COMPLETED:
            return _of_completed_refund(refund)
        case RefundStatus.CANCELED | RefundStatus.FAILED:
            can_try_again = refund.payment.refundable_amount > 0
            summary = _of_unsent_money(refund, failures.OF_REFUNDS if can_try_again else {})
            if summary.tone == "calm" or not can_try_again:
                return summary
            url = _page("payments_payment", refund.payment_id)
            return replace(summary, url=url, link=_("Open the payment"))


def _of_completed_refund(refund: Refund) -> Summary:
    amount = money.display(refund.amount)
    if refund.reversal_id:
        return Summary(of_refunds.OF_REVERSAL.format(amount=amount), "good")
    if refund.returned_at is None:
        return Summary(of_refunds.COMPLETED_AT.format(amount=amount, at=_at(refund.completed_at)), "good")
    text, url = of_refunds.RETURNED.format(amount=amount), _page(EXCEPTION, refund.id)
    if ReconciliationException.objects.filter(pk=refund.id).exists():
        return Summary(text, "bad", url, DECIDE)
    return Summary(text, "calm", url, _("See what was decided"))


def _of_withdrawal_status(withdrawal: Withdrawal, now: datetime) -> Summary:
    match WithdrawalStatus(withdrawal.status):
        case WithdrawalStatus.PENDING:
            return _of_pause() or _of_debt(withdrawal) or _of_order(withdrawal.id, now)
        case WithdrawalStatus.PROCESSING:
            return _of_order(withdrawal.id, now)
        case WithdrawalStatus.SUCCEEDED:
            amount, at = money.display(withdrawal.amount), _at(withdrawal.completed_at)
            return Summary(explanations.ARRIVED.format(amount=amount, at=at), "good")
        case WithdrawalStatus.CANCELED | WithdrawalStatus.FAILED:
            return _of_unsent_money(withdrawal, failures.OF_WITHDRAWALS)


def _of_unsent_money(row: Refund | Withdrawal, catalogue: Mapping[str, Failure]) -> Summary:
    """It was canceled or failed. catalogue: for what to do next; empty if nothing can be done."""
    text = explanations.FAILED if row.failure_code else explanations.CANCELED
    words = text.format(amount=money.display(row.amount), reason=failures.words(row.failure_code))
    if row.failure_code in (None, failures.REJECTED_BY_STAFF):
        return Summary(words, "calm")
    return Summary(f"{words} {failures.advice(catalogue, row.failure_code)}" if catalogue else words, "bad")


def _of_debt(withdrawal: Withdrawal) -> Summary | None:
    """A debt of the merchant holds its withdrawals."""
    debt = ledger.balance(withdrawal.merchant_id).debt
    text = explanations.WAITS_FOR_DEBT.format(debt=money.display(debt))
    return _at_merchant(text, withdrawal.merchant_id) if debt else None


def _of_order(order_id: str, now: datetime) -> Summary:
    order = Transfer.objects.filter(pk=order_id).first()
    if order is None or order.state != TransferState.SUBMITTED:
        return _of_pause() or (order and _of_unsent(order, now)) or Summary(explanations.SENT_SOON, "wait")
    if is_overdue(order, now):
        waited = clock.format_duration(now - (order.submitted_at or order.created_at))
        return _at_order(explanations.OVERDUE.format(duration=waited), "bad", order)
    text = explanations.ASKED_SOON if order.due_at <= now else explanations.ASKED_AT
    return Summary(text.format(at=_soon(order.due_at, now)), "wait")


def of_transfer(order: Transfer, now: datetime) -> Summary:
    """A contradiction of the bank, or how the order stands, with a link to what it pays."""
    summary = _of_contradiction(order.id) or _of_transfer_state(order, now)
    if summary.url and summary.url != _page("transfers_transfer", order.id):
        return summary
    model = {"refund": "refunds_refund", "withdrawal": "withdrawals_withdrawal"}.get(
        order.purpose, "reconciliation_return"
    )
    return replace(summary, url=_page(model, order.id), link=_("See what it is for"), permission="")


def _of_transfer_state(order: Transfer, now: datetime) -> Summary:
    amount = money.display(order.amount)
    match TransferState(order.state):
        case TransferState.HELD:
            return Summary(explanations.NEEDS_APPROVAL.format(amount=amount), "wait")
        case TransferState.SUCCEEDED:
            text = explanations.ARRIVED.format(amount=amount, at=_at(order.completed_at))
            return Summary(text, "good")
        case TransferState.FAILED:
            reason = failures.words(order.failure_code)
            return Summary(explanations.NOT_ARRIVED.format(amount=amount, reason=reason), "bad")
        case TransferState.RETURNED:
            return Summary(explanations.CAME_BACK.format(amount=amount), "bad")
        case TransferState.CANCELED:
            return Summary(explanations.NOT_SENT.format(amount=amount), "calm")
        case _:
            return _of_order(order.id, now)


def of_bank_transaction(found: BankTransaction, now: datetime) -> Summary:
    """Why it belongs to its payment or to none. Money that waits leads to the decision."""
    exception = exceptions.by_id([found.id])[found.id]
    is_held = found.match_result in HELD_RESULTS
    is_open = is_held and not found.resolution_state
    link = DECIDE if is_open else _("See what was decided")
    tone = "bad" if is_open else "calm" if is_held or found.kind != BankTransactionKind.CREDIT else "good"
    text = f"{exception.title}. {exception.explanation}"
    if not found.is_confirmed:
        unconfirmed = _("Only a statement reports it, so it cannot be paid out yet.")
        text, tone = f"{text} {unconfirmed}", "bad" if is_open else "wait"
    if is_held:
        return Summary(text, tone, _page(EXCEPTION, found.id), link)
    url = _page("payments_payment", found.payment_id) if found.payment_id else ""
    return Summary(text, tone, url, _("Open the payment"))


def _of_pause() -> Summary | None:
    period = safe_mode.current()
    if period is None:
        return None
    text = explanations.PAUSED.format(cause=period.get_cause_display())
    url = _page("transfers_safemode", str(period.pk))
    return Summary(text, "wait", url, _("What to do"), "transfers.view_safemode")


def _of_unsent(order: Transfer, now: datetime) -> Summary | None:
    """What keeps the order from being sent."""
    last = history.last_event_type(order.id)
    if last == TransferEventType.HELD and not _is_account_allowed(order, now):
        return _at_merchant(explanations.ACCOUNT_NOT_LISTED, order.merchant_id)
    next_call_at = circuit_breakers.open_until(Counterparty.of(order.route, order.merchant_id), now)
    if next_call_at is None and last != TransferEventType.NOT_SENT:
        return None
    text, sent_at = explanations.SILENT, next_call_at or order.due_at
    if last == TransferEventType.NOT_SENT:
        text = explanations.SENT_AGAIN_AT
    if sent_at <= now:
        text = explanations.SENT_AGAIN_SOON
    return _at_order(text.format(at=_soon(max(sent_at, order.due_at), now)), "wait", order)


def _is_account_allowed(order: Transfer, now: datetime) -> bool:
    """Whether the list of the merchant has the account. It is judged once more when the order is sent."""
    try:
        payout_accounts.check(order.merchant_id, order.bank_code, order.account, now=now)
    except (PayoutAccountNotAllowed, PayoutAccountTooNew):
        return False
    return True


def _at_merchant(text: str | Promise, merchant_id: str) -> Summary:
    url = _page("merchants_merchant", merchant_id)
    return Summary(text, "wait", url, _("See the merchant"), "merchants.view_merchant")


def _at_order(text: str, tone: str, order: Transfer) -> Summary:
    return Summary(text, tone, _page("transfers_transfer", order.id), _("See the order"))
