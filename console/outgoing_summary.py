"""One sentence that says how a refund or a withdrawal stands and what to do next."""

from datetime import datetime

from django.utils.translation import gettext as _

from approvals import payout_accounts
from approvals.models import ApprovalKind
from approvals.payout_accounts import PayoutAccountNotAllowed, PayoutAccountTooNew
from console import summaries
from console.summaries import Summary
from core import failures, money
from ledger import services as ledger
from reconciliation.exceptions.explanations import format_duration
from reconciliation.models import ReconciliationException
from reconciliation.transfer_acts import is_overdue
from refunds.models import Refund, RefundStatus
from transfers import circuit_breakers, history, safe_mode
from transfers.circuit_breakers import Counterparty
from transfers.models import Transfer, TransferContradiction, TransferEventType, TransferState
from withdrawals.models import Withdrawal, WithdrawalStatus

EXCEPTION = "reconciliation_reconciliationexception"


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
    reported = list(TransferContradiction.objects.filter(subject_id=subject_id).values_list("pk", flat=True))
    if not reported:
        return None
    waiting = ReconciliationException.objects.filter(pk__in=reported).order_by("opened_at", "pk").first()
    if waiting is None:
        return None
    text = _("The bank reports another end of it than we recorded.")
    return Summary(text, "bad", summaries.page(EXCEPTION, waiting.pk), _("Decide what happens to it"))


def _of_approval(row: Refund | Withdrawal) -> Summary | None:
    approval = summaries.waiting_approval(row.id)
    if approval is None:
        return None
    values = {"amount": money.display(row.amount)}
    if approval.kind == ApprovalKind.NEVER_ARRIVED:
        text = _("A colleague says that %(amount)s never arrived. A second person must approve it.")
    else:
        text = _("%(amount)s waits for approval by a second person.")
    return summaries.for_approval(text % values, approval.id)


def _of_refund_status(refund: Refund, now: datetime) -> Summary:
    values = {"amount": money.display(refund.amount), "reason": failures.words(refund.failure_code)}
    match RefundStatus(refund.status):
        case RefundStatus.PENDING if not refund.route:
            text = _(
                "It waits for the customer's account: from the merchant's system, "
                "or from the customer on the claim page."
            )
            return Summary(text, "wait")
        case RefundStatus.PENDING:
            return _of_order(refund.id, now)
        case RefundStatus.COMPLETED:
            return _of_completed_refund(refund, values)
        case RefundStatus.CANCELED:
            return Summary(_canceled() % values, "calm")
        case RefundStatus.FAILED if refund.failure_code == failures.REJECTED_BY_STAFF:
            return Summary(_rejected() % values, "calm")
        case RefundStatus.FAILED:
            return _of_failed_refund(refund, values)


def _of_completed_refund(refund: Refund, values: dict[str, str]) -> Summary:
    values |= {"at": summaries.at(refund.completed_at), "returned_at": summaries.at(refund.returned_at)}
    if refund.reversal_id:
        return Summary(_("The bank itself took back %(amount)s. This refund only shows it.") % values, "good")
    if refund.returned_at is None:
        text = _("%(amount)s went back to the payer on %(at)s.") % values
        return Summary(f"{text} {_nothing_left()}", "good")
    url = summaries.page(EXCEPTION, refund.id)
    text = _("The bank sent %(amount)s back on %(returned_at)s.") % values
    if ReconciliationException.objects.filter(pk=refund.id).exists():
        return Summary(text, "bad", url, _("Decide what happens to it"))
    return Summary(text, "calm", url, _("See what was decided"))


def _of_failed_refund(refund: Refund, values: dict[str, str]) -> Summary:
    text = _("It failed (%(reason)s), and %(amount)s is in the merchant's balance again.") % values
    if not refund.payment.refundable_amount:
        return Summary(text, "bad")
    again = failures.advice(failures.OF_REFUNDS, refund.failure_code)
    url = summaries.page("payments_payment", refund.payment_id)
    return Summary(f"{text} {again}", "bad", url, _("Open the payment"))


def _of_withdrawal_status(withdrawal: Withdrawal, now: datetime) -> Summary:
    values = {"amount": money.display(withdrawal.amount), "reason": failures.words(withdrawal.failure_code)}
    match WithdrawalStatus(withdrawal.status):
        case WithdrawalStatus.PENDING:
            return _of_pause() or _of_debt(withdrawal) or _of_order(withdrawal.id, now)
        case WithdrawalStatus.PROCESSING:
            return _of_order(withdrawal.id, now)
        case WithdrawalStatus.SUCCEEDED:
            values["at"] = summaries.at(withdrawal.completed_at)
            text = _("%(amount)s arrived on %(at)s.") % values
            return Summary(f"{text} {_nothing_left()}", "good")
        case WithdrawalStatus.CANCELED:
            return Summary(_canceled() % values, "calm")
        case WithdrawalStatus.FAILED:
            return _of_failed_withdrawal(withdrawal, values)


def _of_failed_withdrawal(withdrawal: Withdrawal, values: dict[str, str]) -> Summary:
    if withdrawal.failure_code == failures.REJECTED_BY_STAFF:
        return Summary(_rejected() % values, "calm")
    text = _("It failed (%(reason)s), and %(amount)s is in the merchant's balance again.")
    again = failures.advice(failures.OF_WITHDRAWALS, withdrawal.failure_code)
    return Summary(f"{text % values} {again}", "bad")


def _of_debt(withdrawal: Withdrawal) -> Summary | None:
    """A debt of the merchant holds its withdrawals."""
    debt = ledger.balance(withdrawal.merchant_id).debt
    if not debt:
        return None
    text = _("It waits because the merchant owes %(debt)s. It is sent when this is paid.")
    return _at_merchant(text % {"debt": money.display(debt)}, withdrawal.merchant_id)


def _of_order(order_id: str, now: datetime) -> Summary:
    """How the order to the bank stands."""
    order = Transfer.objects.filter(pk=order_id).first()
    if order is None or order.state != TransferState.SUBMITTED:
        soon = Summary(_("It is sent to the bank in a moment."), "wait")
        return _of_pause() or (order and _of_unsent(order, now)) or soon
    if is_overdue(order, now):
        return _of_overdue(order, now)
    text = _("The bank has the order. It is asked at %(at)s whether the money arrived.")
    if order.due_at <= now:
        text = _("The bank has the order. It is asked in a moment whether the money arrived.")
    return Summary(text % {"at": summaries.soon(order.due_at, now)}, "wait")


def _of_pause() -> Summary | None:
    """All outgoing money is paused."""
    period = safe_mode.current()
    if period is None:
        return None
    text = _("It waits because no money is sent now: %(cause)s.") % {"cause": period.get_cause_display()}
    url = summaries.page("transfers_safemode", str(period.pk))
    return Summary(text, "wait", url, _("What to do"), "transfers.view_safemode")


def _of_unsent(order: Transfer, now: datetime) -> Summary | None:
    """What keeps the order from being sent."""
    last = history.last_event_type(order.id)
    if last == TransferEventType.HELD and not _is_account_allowed(order, now):
        text = _("It waits because its account is not on the merchant's list of payout accounts.")
        return _at_merchant(text, order.merchant_id)
    next_call_at = circuit_breakers.open_until(Counterparty.of(order.route, order.merchant_id), now)
    if next_call_at is None and last != TransferEventType.NOT_SENT:
        return None
    text, sent_at = _("The bank does not answer. The order is sent at %(at)s."), next_call_at or order.due_at
    if last == TransferEventType.NOT_SENT:
        text = _("The bank cannot be reached. The order is sent again at %(at)s.")
    if sent_at <= now:
        text = _("The bank cannot be reached. The order is sent again in a moment.")
    values = {"at": summaries.soon(max(sent_at, order.due_at), now)}
    return Summary(text % values, "wait", summaries.page("transfers_transfer", order.id), _see_order())


def _is_account_allowed(order: Transfer, now: datetime) -> bool:
    """Whether the list of the merchant has the account. It is judged once more when the order is sent."""
    try:
        payout_accounts.check(order.merchant_id, order.bank_code, order.account, now=now)
    except (PayoutAccountNotAllowed, PayoutAccountTooNew):
        return False
    return True


def _of_overdue(order: Transfer, now: datetime) -> Summary:
    waited = format_duration(now - (order.submitted_at or order.created_at))
    text = _("For %(duration)s the bank has not said whether it arrived. Ask the bank, then mark the order.")
    url = summaries.page("transfers_transfer", order.id)
    return Summary(text % {"duration": waited}, "bad", url, _see_order())


def _at_merchant(text: str, merchant_id: str) -> Summary:
    url = summaries.page("merchants_merchant", merchant_id)
    return Summary(text, "wait", url, _("See the merchant"), "merchants.view_merchant")


def _see_order() -> str:
    return _("See the order")


def _canceled() -> str:
    return _("It was canceled before the bank had it. %(amount)s is in the merchant's balance again.")


def _rejected() -> str:
    return _("Staff rejected it. %(amount)s is in the merchant's balance again.")


def _nothing_left() -> str:
    return _("Nothing is left to do.")
