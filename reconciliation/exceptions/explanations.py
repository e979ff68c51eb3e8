"""Why an exception is open, in sentences for staff. Times are in the console's time zone."""

from datetime import timedelta

from django.utils.timezone import localtime
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop, ngettext_lazy

from core import failures, money
from payments.models import Payment, PaymentStatus
from reconciliation.models import (
    BankTransaction,
    BankTransactionKind,
    Excess,
    MatchResult,
    ResolutionState,
    Return,
    ReturnStatus,
)
from transfers.models import TransferContradiction

DURATION_UNITS = [
    (86_400, ngettext_lazy("%d day", "%d days")),
    (3_600, ngettext_lazy("%d hour", "%d hours")),
    (60, ngettext_lazy("%d minute", "%d minutes")),
    (1, ngettext_lazy("%d second", "%d seconds")),
]


def format_duration(duration: timedelta) -> str:
    """ "3 hours": rounded down to the largest unit."""
    seconds = int(duration.total_seconds())
    if seconds < 1:
        return _("less than a second")
    size, text = next((size, text) for size, text in DURATION_UNITS if seconds >= size)
    return str(text % (seconds // size))


def of_transaction(
    movement: BankTransaction,
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
        return of_probable_duplicate(movement, probable_duplicate)
    sentence = _of_excess(movement, excess) if excess else _of_match_result(movement, credited)
    if is_waiting_for_approval:
        waits = _("The requested action waits for approval by a second person.")
        return f"{sentence} {waits}"
    if latest_return is None:
        return sentence
    of_return = _of_manual_return if movement.kind == BankTransactionKind.REVERSAL else _of_return
    return f"{sentence} {of_return(latest_return)}"


def of_probable_duplicate(movement: BankTransaction, other: BankTransaction) -> str:
    """Why two reports are probably one bank transaction, and what would prove that they are two."""
    at = localtime(other.paid_at)
    start = _("Probable duplicate of %(other)s of %(at)s") % {
        "other": other.id,
        "at": f"{at:%Y-%m-%d %H:%M:%S}",
    }
    days = ", ".join(sorted({f"{localtime(each.paid_at):%Y-%m-%d}" for each in (movement, other)}))
    proof = _(
        "Import the complete statements of %(days)s: a second line with this reference and amount proves it"
    ) % {"days": days}
    end = _("If the bank says that there is only one transaction, merge them.")
    if movement.id_at_bank and other.id_at_bank:
        return _(
            "%(start)s: the bank gave two transaction ids, but its statement has one line for both. "
            "The money cannot move until two transactions are proven. %(proof)s. %(end)s"
        ) % {"start": start, "proof": proof, "end": end}
    return _(
        "%(start)s: one of them is only a statement line, the other is in no statement. The money "
        "cannot move until two transactions are proven. %(proof)s, and so does a bank transaction "
        "id for the statement line. %(end)s"
    ) % {"start": start, "proof": proof, "end": end}


def of_notification(result: str, movement: BankTransaction | None, *, source: str) -> str:
    if result == "unsigned":
        return _("A notification without a signature. The bank was asked and does not confirm it.")
    if result == "unreadable":
        what = _("A statement line") if source == "statement" else _("A bank message")
        return _("%(what)s that cannot be read.") % {"what": what}
    if movement is None:
        return _("The bank reports an order that we did not send.")
    return _("The bank reported transaction %(id)s differently before.") % {
        "id": movement.current_bank_transaction_id
    }


def of_contradiction(contradiction: TransferContradiction) -> str:
    """What the bank says, what we recorded, and what staff should do."""
    amount, sender = money.display(contradiction.amount), contradiction.route.partition(":")[2]
    if contradiction.subject_id.startswith("pay_"):
        return _of_card_payment(contradiction, amount, sender)
    start = _("Order %(subject_id)s over %(amount)s is %(state)s here, and %(sender)s says %(answer)s.") % {
        "subject_id": contradiction.subject_id,
        "amount": amount,
        "state": contradiction.state,
        "sender": sender,
        "answer": contradiction.answer,
    }
    what_to_do = _WHAT_TO_DO.get((contradiction.state, contradiction.answer), _ASK_THE_BANK)
    return f"{start} {_(what_to_do)}"


_ASK_THE_BANK = gettext_noop("Ask the bank where the money is, then dismiss this and note the answer.")
_WHAT_TO_DO = {
    ("succeeded", "failed"): (
        gettext_noop(
            "Ask the bank. If the money never left, mark the order as returned. If it arrived, dismiss this."
        )
    ),
    ("failed", "succeeded"): (
        gettext_noop(
            "The bank sent the money, but it was released here. No action can correct this: the merchant was "
            "notified that the order failed, and may have used the money or sent it again. Ask the bank to "
            "recall it, or agree on a solution with the merchant. Then dismiss this and note what was agreed."
        )
    ),
}


def _of_card_payment(contradiction: TransferContradiction, amount: str, sender: str) -> str:
    charged = amount
    if contradiction.answer_amount is not None:
        charged = money.display(contradiction.answer_amount)
        if contradiction.answer_currency != money.CURRENCY:
            charged = _("%(amount)s of the smallest unit of %(currency)s") % {
                "amount": contradiction.answer_amount,
                "currency": contradiction.answer_currency,
            }
    if contradiction.state == PaymentStatus.PENDING:
        return _(
            "Card payment %(subject_id)s asked for %(amount)s, and %(sender)s charged %(charged)s. "
            "Refund the charge at %(sender)s, then mark the payment as failed and note the refund "
            "number. If the payment has ended meanwhile, dismiss this."
        ) % {"subject_id": contradiction.subject_id, "amount": amount, "sender": sender, "charged": charged}
    return _(
        "Card payment %(subject_id)s failed here, and %(sender)s charged %(charged)s. Refund the "
        "charge at %(sender)s, then dismiss this and note the refund number."
    ) % {"subject_id": contradiction.subject_id, "sender": sender, "charged": charged}


_FINAL_RESULTS = {
    MatchResult.PENDING: gettext_noop("It is not matched yet."),
    MatchResult.APPLIED: gettext_noop("Its payment succeeded."),
    MatchResult.DECLINED: gettext_noop("The bank declined the payment: no money moved."),
    MatchResult.REVERSED: gettext_noop("Reversed by the bank."),
    MatchResult.ORDERED: gettext_noop("The bank reversed it on our order."),
}


def _of_excess(movement: BankTransaction, excess: Excess) -> str:
    words = {
        "received": money.display(movement.amount),
        "credited": money.display(movement.amount - excess.amount),
        "excess": money.display(excess.amount),
    }
    if excess.resolution_state == ResolutionState.TAKEN_BACK:
        return _("The bank reversed %(credited)s of the merchant and the excess of %(excess)s.") % words
    return _("Of %(received)s, %(credited)s are credited. The excess is %(excess)s.") % words


def _of_match_result(movement: BankTransaction, credited: BankTransaction | None) -> str:
    match_result = MatchResult(movement.match_result)
    if match_result in _FINAL_RESULTS:
        return _(_FINAL_RESULTS[match_result])
    if movement.resolution_state == ResolutionState.MERGED:
        return _("Merged: staff found that it is the same bank transaction as another.")
    if movement.resolution_state == ResolutionState.ATTACHED:
        return _("It was attached to payment %(payment_id)s.") % {"payment_id": movement.payment_id}
    if movement.kind == BankTransactionKind.REVERSAL:
        return _("Reversed by the bank, but the money is no longer here.")
    return _of_held_money(movement, movement.payment, credited)


def _of_held_money(
    movement: BankTransaction, payment: Payment | None, credited: BankTransaction | None
) -> str:
    if payment is None:
        return _("Unknown reference.") if movement.reference1 else _("No reference.")
    if movement.match_result == MatchResult.TIME_MISMATCH:
        return _("Wrong time: paid %(duration)s before the code was made.") % {
            "duration": format_duration(payment.created_at - movement.paid_at)
        }
    if movement.match_result == MatchResult.AMOUNT_MISMATCH:
        return _of_wrong_amount(movement.amount, payment.amount)
    if movement.match_result == MatchResult.LATE and payment.expires_at is not None:
        return _("Paid after expiry: %(duration)s after the code had expired.") % {
            "duration": format_duration(movement.paid_at - payment.expires_at)
        }
    return _of_paid_twice(payment, credited)


def _of_wrong_amount(received: int, expected: int) -> str:
    text = (
        _("Wrong amount: %(difference)s too little, %(expected)s expected.")
        if received < expected
        else _("Wrong amount: %(difference)s too much, %(expected)s expected.")
    )
    return text % {
        "difference": money.display(abs(expected - received)),
        "expected": money.display(expected),
    }


def _of_paid_twice(payment: Payment, credited: BankTransaction | None) -> str:
    if credited is not None:
        at = localtime(credited.paid_at)
        return _("Paid twice: first paid by %(id)s on %(at)s.") % {
            "id": credited.current_bank_transaction_id,
            "at": f"{at:%Y-%m-%d %H:%M:%S}",
        }
    if payment.failure_code:
        reason = failures.words(payment.failure_code)
        return _("Paid after the payment had failed: %(reason)s.") % {"reason": reason}
    return _("Paid twice.")


def _of_manual_return(payer_return: Return) -> str:
    at = localtime(payer_return.created_at)
    reference = f" ({payer_return.bank_reference})" if payer_return.bank_reference else ""
    return _(
        "The credit was sent back manually on %(at)s%(reference)s. If the bank means that, dismiss "
        "this. If the money left twice, write it off."
    ) % {"at": f"{at:%Y-%m-%d %H:%M:%S}", "reference": reference}


def _of_return(latest_return: Return) -> str:
    if latest_return.status == ReturnStatus.FAILED:
        reason = failures.words(latest_return.failure_code)
        return _("It could not be sent back: %(reason)s.") % {"reason": reason}
    if latest_return.status == ReturnStatus.CANCELED:
        return _("It was not sent back: the order was canceled before the bank received it.")
    if latest_return.returned_at is not None:
        return _("It was sent back, and the bank returned it.")
    return (
        _("It is on its way back.")
        if latest_return.status == ReturnStatus.PENDING
        else _("It was sent back.")
    )
