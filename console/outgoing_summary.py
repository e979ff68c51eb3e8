"""One sentence that says how a refund or a withdrawal stands and what to do next."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from approvals import payout_accounts
from approvals.models import Approval, ApprovalKind
from approvals.payout_accounts import PayoutAccountNotAllowed, PayoutAccountTooNew
from console import summaries
from console.summaries import Summary
from core import failures, money
from core.failures import Failure
from ledger import services as ledger
from reconciliation.exceptions.explanations import contradicting_ends, format_duration
from reconciliation.models import ReconciliationException
from reconciliation.transfer_acts import is_overdue
from refunds import explanations as of_refunds
from refunds.models import Refund, RefundStatus
from transfers import circuit_breakers, explanations, history, safe_mode
from transfers.circuit_breakers import Counterparty
from transfers.models import Transfer, TransferContradiction, TransferEventType, TransferState
from withdrawals.models import Withdrawal, WithdrawalStatus

APPROVAL, EXCEPTION = "approvals_approval", "reconciliation_reconciliationexception"
DECIDE = _("Decide what happens to it")


def of_refund(refund: Refund, now: datetime) -> Summary:
    """The most urgent of: money to decide about, an approval that waits, the status."""
    return _of_contradiction(refund.id) or _of_approval(refund) or _of_refund_status(refund, now)


def of_withdrawal(withdrawal: Withdrawal, now: datetime) -> Summary:
    """The most urgent of: a contradiction of the bank, an approval that waits, the status."""
    return (
        _of_contradiction(withdrawal.id) or _of_approval(withdrawal) or _of_withdrawal_status(withdrawal, now)
    )


def _of_contradiction(subject_id: str) -> Summary | None:
    """The bank reports another end than ours, and staff have not decided about it."""
    reported = TransferContradiction.objects.filter(subject_id=subject_id).in_bulk()
    if not reported:
        return None
    waiting = (
        ReconciliationException.objects.filter(pk__in=list(reported)).order_by("opened_at", "pk").first()
    )
    if waiting is None:
        return None
    text = contradicting_ends(reported[waiting.pk])
    return Summary(text, "bad", summaries.page(EXCEPTION, waiting.pk), DECIDE)


def _of_approval(row: Refund | Withdrawal) -> Summary | None:
    approval = Approval.objects.waiting().filter(subject_id=row.id).first()
    if approval is None:
        return None
    is_ended_by_staff = approval.kind == ApprovalKind.NEVER_ARRIVED
    text = explanations.NEVER_ARRIVED if is_ended_by_staff else explanations.NEEDS_APPROVAL
    sentence, url = text.format(amount=money.display(row.amount)), summaries.page(APPROVAL, approval.id)
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
            url = summaries.page("payments_payment", refund.payment_id)
            return replace(summary, url=url, link=_("Open the payment"))


def _of_completed_refund(refund: Refund) -> Summary:
    amount = money.display(refund.amount)
    if refund.reversal_id:
        return Summary(of_refunds.OF_REVERSAL.format(amount=amount), "good")
    if refund.returned_at is None:
        text = of_refunds.COMPLETED_AT.format(amount=amount, at=summaries.at(refund.completed_at))
        return Summary(text, "good")
    text, url = of_refunds.RETURNED.format(amount=amount), summaries.page(EXCEPTION, refund.id)
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
            amount, at = money.display(withdrawal.amount), summaries.at(withdrawal.completed_at)
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
    if not debt:
        return None
    text = explanations.WAITS_FOR_DEBT.format(debt=money.display(debt))
    return _at_merchant(text, withdrawal.merchant_id)


def _of_order(order_id: str, now: datetime) -> Summary:
    """How the order to the bank stands."""
    order = Transfer.objects.filter(pk=order_id).first()
    if order is None or order.state != TransferState.SUBMITTED:
        return _of_pause() or (order and _of_unsent(order, now)) or Summary(explanations.SENT_SOON, "wait")
    if is_overdue(order, now):
        waited = format_duration(now - (order.submitted_at or order.created_at))
        return _at_order(explanations.OVERDUE.format(duration=waited), "bad", order)
    text = explanations.ASKED_SOON if order.due_at <= now else explanations.ASKED_AT
    return Summary(text.format(at=summaries.soon(order.due_at, now)), "wait")


def _of_pause() -> Summary | None:
    """All outgoing money is paused."""
    period = safe_mode.current()
    if period is None:
        return None
    text = explanations.PAUSED.format(cause=period.get_cause_display())
    url = summaries.page("transfers_safemode", str(period.pk))
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
    return _at_order(text.format(at=summaries.soon(max(sent_at, order.due_at), now)), "wait", order)


def _is_account_allowed(order: Transfer, now: datetime) -> bool:
    """Whether the list of the merchant has the account. It is judged once more when the order is sent."""
    try:
        payout_accounts.check(order.merchant_id, order.bank_code, order.account, now=now)
    except (PayoutAccountNotAllowed, PayoutAccountTooNew):
        return False
    return True


def _at_merchant(text: str | Promise, merchant_id: str) -> Summary:
    url = summaries.page("merchants_merchant", merchant_id)
    return Summary(text, "wait", url, _("See the merchant"), "merchants.view_merchant")


def _at_order(text: str, tone: str, order: Transfer) -> Summary:
    return Summary(text, tone, summaries.page("transfers_transfer", order.id), _("See the order"))
