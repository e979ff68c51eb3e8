"""What staff and merchants read about reports of banks, exceptions, decisions and returns.

Each fact is here once. Times are in the console's time zone.
"""

from django.utils.timezone import localtime
from django.utils.translation import gettext, gettext_lazy as _, gettext_noop

import banks
from core import clock, failures, money
from payments.match_results import HELD, OF_PAYMENTS
from payments.models import Payment, PaymentStatus
from reconciliation.models import (
    BankNotification,
    BankTransaction,
    BankTransactionKind,
    Excess,
    MatchResult,
    NotificationResult,
    ReportSource,
    ResolutionState,
    ResolutionType,
    Return,
    ReturnStatus,
)
from refunds.explanations import RETURNED as REFUND_RETURNED
from refunds.models import Refund
from transfers.models import TransferContradiction

Subject = BankTransaction | BankNotification | Refund | TransferContradiction
"""What an exception can be about."""

KINDS = {
    BankTransactionKind.CREDIT: _("{amount} received"),
    BankTransactionKind.DECLINE: _("the payment was declined"),
    BankTransactionKind.REVERSAL: _("{amount} reversed by the bank"),
}
NOTIFICATIONS = {
    NotificationResult.NEW: _("The bank reported the result of an order."),
    NotificationResult.REPEAT: _("The bank repeated its notification."),
    NotificationResult.CONFLICT: _("The bank reported a result that contradicts our record of an order."),
    NotificationResult.FEE_DIFFERS: _(
        "The statement of the bank names another fee than the terms of the merchant."
    ),
    NotificationResult.UNREADABLE: _("A bank message that cannot be read."),
    NotificationResult.MOVED: _(
        "A bank message about a merchant that has moved. Tell those who have its books now, then dismiss it."
    ),
    NotificationResult.UNSIGNED: (
        _("A notification without a signature. The bank was asked and does not confirm it.")
    ),
}
RETURNS = {
    ReturnStatus.PENDING: _("{amount} is on its way back to the payer."),
    ReturnStatus.COMPLETED: _("{amount} went back to the payer."),
    ReturnStatus.FAILED: _("{amount} could not be sent back: {reason}."),
    ReturnStatus.CANCELED: _("{amount} was not sent back: canceled before the bank had it."),
}
RETURNED = _("{amount} went back to the payer, and the bank returned it.")
RESOLUTIONS = {
    ResolutionType.ACCEPTED: _("The money is accepted for this payment."),
    ResolutionType.ATTACHED: _("The money is accepted for another payment than the one it referred to."),
    ResolutionType.SENT_BACK: _("The money will be sent back to the payer."),
    ResolutionType.SENT_BACK_BY_HAND: _("The money was sent back to the payer manually at the bank."),
    ResolutionType.EXCESS_SENT_BACK: _(
        "The payment succeeds with its amount, and the excess will be sent back to the payer."
    ),
    ResolutionType.MERGED: _("Two reports were the same bank transaction: it is counted once."),
    ResolutionType.UNDONE: _("The import that reported this money was undone: it does not count."),
    ResolutionType.ACQUIRER: _("The money is a transfer of the acquirer, whose payments have it already."),
    ResolutionType.DISMISSED: _("Dismissed: no action needed."),
    ResolutionType.WRITTEN_OFF: _("Written off: the bank reversed money that had already been sent back."),
    ResolutionType.REOPENED: _("Reopened for staff."),
    ResolutionType.CONFIRMED: _(
        "A second person confirmed money reported only by a statement: it is available now."
    ),
    ResolutionType.BOOKED_RETURNED: _(
        "The bank never sent the money it had reported as sent: recorded as returned."
    ),
    ResolutionType.BOOKED_FAILED: _(
        "The acquirer charged another amount and refunded it: recorded as failed."
    ),
    ResolutionType.KEPT: _("A refund was returned: its money is available again."),
}
NO_REFERENCE = gettext_noop("No reference.")
# By our state of an order, and that at the bank.
WHAT_TO_DO = {
    ("succeeded", "failed"): gettext_noop(
        "Ask the bank. If the money never left, mark the order as returned. If it arrived, dismiss this."
    ),
    ("failed", "succeeded"): gettext_noop(
        "The bank sent the money, but it was released here. No action can correct this: the merchant was "
        "notified that the order failed, and may have used the money or sent it again. Ask the bank to "
        "recall it, or agree on a solution with the merchant. Then dismiss this and note what was agreed."
    ),
}


def of_difference(satang: int) -> str:
    text = _("%(amount)s too much") if satang > 0 else _("%(amount)s too little")
    return text % {"amount": money.display(abs(satang))}


def title(subject: Subject) -> str:
    """The name of an exception."""
    if isinstance(subject, BankNotification):
        return _("A message from %(bank)s") % {"bank": subject.bank}
    if isinstance(subject, Refund):
        return _("A refund of %(merchant)s") % {"merchant": subject.merchant.name}
    if isinstance(subject, BankTransaction):
        words = {"amount": money.display(subject.amount), "bank": banks.title(subject.bank)}
        return _("%(amount)s at %(bank)s") % words
    words = {"amount": money.display(subject.amount), "subject_id": subject.subject_id}
    return _("%(amount)s of %(subject_id)s") % words


def of_other(subject: BankNotification | Refund | TransferContradiction) -> str:
    """Why it is an exception, if it is no bank transaction."""
    if isinstance(subject, BankNotification):
        return of_notification(subject)
    if isinstance(subject, Refund):
        return REFUND_RETURNED.format(amount=money.display(subject.amount))
    return of_contradiction(subject)


def of_transaction(
    bank_transaction: BankTransaction,
    credited: BankTransaction | None,
    latest_return: Return | None,
    *,
    excess: Excess | None = None,
    is_waiting_for_approval: bool = False,
    probable_duplicate: BankTransaction | None = None,
) -> str:
    """credited: the bank transaction that paid the payment.

    excess: of this money, if its payment received only a part.
    latest_return: of this money; or, for an unmatched reversal, the manual return of its credit.
    is_waiting_for_approval: a return or a write-off waits for a second person.
    """
    if probable_duplicate is not None:
        return of_probable_duplicate(bank_transaction, probable_duplicate)
    sentence = (
        _of_excess(bank_transaction, excess) if excess else _of_match_result(bank_transaction, credited)
    )
    if is_waiting_for_approval:
        more = gettext("The requested action waits for approval by a second person.")
    elif latest_return is None:
        return sentence
    elif bank_transaction.kind == BankTransactionKind.REVERSAL:
        more = _of_manual_return(latest_return)
    else:
        more = of_return(latest_return)
    return f"{sentence} {more}"


def of_probable_duplicate(bank_transaction: BankTransaction, other: BankTransaction) -> str:
    """Why two reports are probably one bank transaction, and what would prove that they are two."""
    why = gettext("one of them is only a statement line, the other is in no statement")
    proof = gettext("So does a bank reference of the statement line.")
    if bank_transaction.id_at_bank and other.id_at_bank:
        why, proof = gettext("the bank gave two references, but its statement has one line for both"), ""
    days = ", ".join(sorted({f"{localtime(each.paid_at):%Y-%m-%d}" for each in (bank_transaction, other)}))
    text = _(
        "Probable duplicate of %(other)s of %(at)s: %(why)s. The money cannot move until two transactions "
        "are proven. Import the complete statements of %(days)s: a second line with this reference and "
        "amount proves it. %(proof)s If the bank says that there is only one transaction, merge them."
    )
    values = {"other": other.id, "at": clock.display(other.paid_at), "why": why, "days": days, "proof": proof}
    return (text % values).replace("  ", " ")


def of_notification(notification: BankNotification) -> str:
    """About a bank transaction, an order, or neither."""
    bank_transaction, result = notification.bank_transaction, NotificationResult(notification.result)
    if bank_transaction is not None and result == NotificationResult.NEW:
        return _("The bank reports: %(bank_transaction)s.") % {
            "bank_transaction": of_report(bank_transaction)
        }
    if result == NotificationResult.CONFLICT and notification.source == ReportSource.STATEMENT:
        return gettext("A statement names another fee than the one that counts. The payment keeps its fee.")
    if bank_transaction is not None and result == NotificationResult.CONFLICT:
        name = bank_transaction.current_bank_reference
        return _("The bank reported transaction %(id)s differently before.") % {"id": name}
    if result == NotificationResult.CONFLICT and not notification.order_id:
        return gettext("The bank reports an order that we did not send.")
    if result == NotificationResult.UNREADABLE and notification.source == ReportSource.STATEMENT:
        return gettext("A statement line that cannot be read.")
    return str(NOTIFICATIONS[result])


def of_report(bank_transaction: BankTransaction) -> str:
    """What the bank reports, and what matching found, within a sentence."""
    what, amount = KINDS[BankTransactionKind(bank_transaction.kind)], money.display(bank_transaction.amount)
    return f"{what.format(amount=amount)}, {bank_transaction.get_match_result_display().lower()}"


def of_contradiction(contradiction: TransferContradiction) -> str:
    """What the bank says, what we recorded, and what staff should do."""
    if not contradiction.subject_id.startswith("pay_"):
        ask = gettext_noop("Ask the bank where the money is, then dismiss this and note the answer.")
        what_to_do = gettext(WHAT_TO_DO.get((contradiction.state, contradiction.answer), ask))
    elif contradiction.state == PaymentStatus.PENDING:
        what_to_do = gettext(
            "Refund the charge at the acquirer, then mark the payment as failed and note the refund "
            "number. If the payment has ended meanwhile, dismiss this."
        )
    else:
        what_to_do = gettext(
            "Refund the charge at the acquirer, then dismiss this and note the refund number."
        )
    return f"{contradicting_ends(contradiction)} {what_to_do}"


def contradicting_ends(contradiction: TransferContradiction) -> str:
    """What the bank or acquirer says, and what we recorded."""
    text = _("Order %(subject_id)s over %(amount)s is %(state)s here, and %(sender)s says %(answer)s.")
    if contradiction.subject_id.startswith("pay_"):
        text = (
            _("Card payment %(subject_id)s asked for %(amount)s, and %(sender)s charged %(charged)s.")
            if contradiction.state == PaymentStatus.PENDING
            else _("Card payment %(subject_id)s failed here, and %(sender)s charged %(charged)s.")
        )
    return text % {
        "subject_id": contradiction.subject_id,
        "amount": money.display(contradiction.amount),
        "state": contradiction.state,
        "sender": contradiction.route.partition(":")[2],
        "answer": contradiction.answer,
        "charged": charged(contradiction),
    }


def charged(contradiction: TransferContradiction) -> str:
    """What the acquirer took: the amount of the payment, or another one in some currency."""
    if contradiction.answer_amount is None:
        return money.display(contradiction.amount)
    if contradiction.answer_currency == money.CURRENCY:
        return money.display(contradiction.answer_amount)
    return _("%(amount)s of the smallest unit of %(currency)s") % {
        "amount": contradiction.answer_amount,
        "currency": contradiction.answer_currency,
    }


def _of_excess(bank_transaction: BankTransaction, excess: Excess) -> str:
    words = {
        "received": money.display(bank_transaction.amount),
        "credited": money.display(bank_transaction.amount - excess.amount),
        "excess": money.display(excess.amount),
    }
    if excess.resolution_state == ResolutionState.TAKEN_BACK:
        return _("The bank reversed %(credited)s of the merchant and the excess of %(excess)s.") % words
    return _("Of %(received)s, %(credited)s are credited. The excess is %(excess)s.") % words


def _of_match_result(bank_transaction: BankTransaction, credited: BankTransaction | None) -> str:
    if bank_transaction.resolution_state in (ResolutionState.MERGED, ResolutionState.UNDONE):
        return f"{bank_transaction.get_resolution_state_display()}."
    if bank_transaction.resolution_state == ResolutionState.ATTACHED:
        return _("It was attached to payment %(payment_id)s.") % {"payment_id": bank_transaction.payment_id}
    if bank_transaction.match_result not in HELD:
        return f"{bank_transaction.get_match_result_display()}."
    if bank_transaction.kind == BankTransactionKind.REVERSAL:
        return gettext("Reversed by the bank, but the money is no longer here.")
    if bank_transaction.payment is None:
        return gettext(HELD[MatchResult.UNMATCHED].sentence if bank_transaction.reference1 else NO_REFERENCE)
    return _of_held_money(bank_transaction, bank_transaction.payment, credited)


def _of_held_money(
    bank_transaction: BankTransaction, payment: Payment, credited: BankTransaction | None
) -> str:
    match bank_transaction.match_result:
        case MatchResult.TIME_MISMATCH:
            values = {"duration": clock.format_duration(payment.created_at - bank_transaction.paid_at)}
        case MatchResult.LATE if payment.expires_at is not None:
            values = {"duration": clock.format_duration(bank_transaction.paid_at - payment.expires_at)}
        case MatchResult.AMOUNT_MISMATCH:
            difference = of_difference(bank_transaction.amount - payment.amount)
            values = {"difference": difference, "expected": money.display(payment.amount)}
        case MatchResult.DUPLICATE if credited is not None:
            values = {"id": credited.current_bank_reference, "at": clock.display(credited.paid_at)}
        case MatchResult.DUPLICATE if payment.failure_code:
            reason = failures.words(payment.failure_code)
            return _("Paid after the payment had failed: %(reason)s.") % {"reason": reason}
        case _:
            return f"{bank_transaction.get_match_result_display()}."
    return gettext(OF_PAYMENTS[MatchResult(bank_transaction.match_result)].sentence) % values


def _of_manual_return(payer_return: Return) -> str:
    reference = f" ({payer_return.bank_reference})" if payer_return.bank_reference else ""
    return _(
        "The credit was sent back manually on %(at)s%(reference)s. If the bank means that, dismiss "
        "this. If the money left twice, write it off."
    ) % {"at": clock.display(payer_return.created_at), "reference": reference}


def of_return(payer_return: Return) -> str:
    text = RETURNED if payer_return.returned_at else RETURNS[ReturnStatus(payer_return.status)]
    reason = failures.words(payer_return.failure_code)
    return str(text).format(amount=money.display(payer_return.amount), reason=reason)
