"""Why an exception is open, in sentences for staff. Times are in the console's time zone."""

from datetime import timedelta

from django.template.defaultfilters import pluralize
from django.utils.timezone import localtime

from core import money
from payments.models import Payment, PaymentStatus
from reconciliation.models import (
    BankTransaction,
    BankTransactionKind,
    MatchResult,
    ResolutionState,
    Return,
    ReturnStatus,
)
from transfers.models import TransferContradiction

DURATION_UNITS = [(86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second")]


def format_duration(duration: timedelta) -> str:
    """ "3 hours": rounded down to the largest unit."""
    seconds = int(duration.total_seconds())
    if seconds < 1:
        return "less than a second"
    size, unit = next((size, unit) for size, unit in DURATION_UNITS if seconds >= size)
    count = seconds // size
    return f"{count} {unit}{pluralize(count)}"


def of_transaction(
    movement: BankTransaction,
    credited: BankTransaction | None,
    latest_return: Return | None,
    *,
    is_waiting_for_approval: bool = False,
    probable_duplicate: BankTransaction | None = None,
) -> str:
    """credited: the bank transaction that paid the payment.

    latest_return: of this money; or, for an unmatched reversal, the manual return of its credit.
    is_waiting_for_approval: a return or a write-off waits for a second person.
    """
    if probable_duplicate is not None:
        return of_probable_duplicate(movement, probable_duplicate)
    sentence = _of_match_result(movement, credited)
    if is_waiting_for_approval:
        return f"{sentence} The requested action waits for approval by a second person."
    if latest_return is None:
        return sentence
    of_return = _of_manual_return if movement.kind == BankTransactionKind.REVERSAL else _of_return
    return f"{sentence} {of_return(latest_return)}"


def of_probable_duplicate(movement: BankTransaction, other: BankTransaction) -> str:
    """Why two reports are probably one bank transaction, and what would prove that they are two."""
    at = localtime(other.paid_at)
    start = f"Probable duplicate of {other.id} of {at:%Y-%m-%d at %H:%M:%S}"
    days = " and ".join(sorted({f"{localtime(each.paid_at):%Y-%m-%d}" for each in (movement, other)}))
    proof = (
        f"Import the complete statements of {days}: a second line with this reference and amount proves it"
    )
    end = "If the bank says that there is only one transaction, merge them."
    if movement.id_at_bank and other.id_at_bank:
        return (
            f"{start}: the bank gave two transaction ids, but its statement has one line for both. The money "
            f"cannot move until two transactions are proven. {proof}. {end}"
        )
    return (
        f"{start}: one of them is only a statement line, the other is in no statement. The money cannot move "
        f"until two transactions are proven. {proof}, and so does a bank transaction id for the statement "
        f"line. {end}"
    )


def of_notification(result: str, movement: BankTransaction | None, *, source: str) -> str:
    if result == "unsigned":
        return "A notification without a signature. The bank was asked and does not confirm it."
    if result == "unreadable":
        what = "A statement line" if source == "statement" else "A bank message"
        return f"{what} that cannot be read."
    if movement is None:
        return "The bank reports an order that we did not send."
    return f"The bank reported transaction {movement.current_bank_transaction_id} differently before."


def of_refund(amount: int, failure_code: str) -> str:
    because = f": {failure_code}" if failure_code else ""
    return f"A refund of {money.display(amount)} came back from the bank{because}."


def of_contradiction(contradiction: TransferContradiction) -> str:
    """What the bank says, what we recorded, and what staff should do."""
    amount, sender = money.display(contradiction.amount), contradiction.route.partition(":")[2]
    if contradiction.subject_id.startswith("pay_"):
        return _of_card_payment(contradiction, amount, sender)
    start = (
        f"Order {contradiction.subject_id} over {amount} is {contradiction.state} here, and {sender} "
        f"says {contradiction.answer}."
    )
    return f"{start} {_WHAT_TO_DO.get((contradiction.state, contradiction.answer), _ASK_THE_BANK)}"


_ASK_THE_BANK = "Ask the bank where the money is, then dismiss this and note the answer."
_WHAT_TO_DO = {
    ("succeeded", "failed"): (
        "Ask the bank. If the money never left, mark the order as returned. If it arrived, dismiss this."
    ),
    ("failed", "succeeded"): (
        "The bank sent the money, but it was released here. No action can correct this: the merchant was "
        "notified that the order failed, and may have used the money or sent it again. Ask the bank to "
        "recall it, or agree on a solution with the merchant. Then dismiss this and note what was agreed."
    ),
}


def _of_card_payment(contradiction: TransferContradiction, amount: str, sender: str) -> str:
    charged = amount
    if contradiction.answer_amount is not None:
        charged = money.display(contradiction.answer_amount)
        if contradiction.answer_currency != money.CURRENCY:
            charged = f"{contradiction.answer_amount} of the smallest unit of {contradiction.answer_currency}"
    if contradiction.state == PaymentStatus.PENDING:
        return (
            f"Card payment {contradiction.subject_id} asked for {amount}, and {sender} charged {charged}. "
            f"Refund the charge at {sender}, then mark the payment as failed and note the refund number. "
            "If the payment has ended meanwhile, dismiss this."
        )
    return (
        f"Card payment {contradiction.subject_id} failed here, and {sender} charged {charged}. "
        f"Refund the charge at {sender}, then dismiss this and note the refund number."
    )


_FINAL_RESULTS = {
    MatchResult.PENDING: "It is not matched yet.",
    MatchResult.APPLIED: "Its payment succeeded.",
    MatchResult.DECLINED: "The bank declined the payment: no money moved.",
    MatchResult.REVERSED: "Reversed by the bank.",
    MatchResult.ORDERED: "The bank reversed it on our order.",
}


def _of_match_result(movement: BankTransaction, credited: BankTransaction | None) -> str:
    match_result = MatchResult(movement.match_result)
    if match_result in _FINAL_RESULTS:
        return _FINAL_RESULTS[match_result]
    if movement.resolution_state == ResolutionState.MERGED:
        return "Merged: staff found that it is the same bank transaction as another."
    if movement.resolution_state == ResolutionState.ATTACHED:
        return f"It was attached to payment {movement.payment_id}."
    if movement.kind == BankTransactionKind.REVERSAL:
        return "Reversed by the bank, but the money is no longer here."
    return _of_held_money(movement, movement.payment, credited)


def _of_held_money(
    movement: BankTransaction, payment: Payment | None, credited: BankTransaction | None
) -> str:
    if payment is None:
        return "Unknown reference." if movement.reference1 else "No reference."
    if movement.match_result == MatchResult.AMOUNT_MISMATCH:
        return _of_wrong_amount(movement.amount, payment.amount)
    if movement.match_result == MatchResult.LATE and payment.expires_at is not None:
        return (
            f"Paid after expiry: {format_duration(movement.paid_at - payment.expires_at)} after the "
            "code had expired."
        )
    return _of_paid_twice(payment, credited)


def _of_wrong_amount(received: int, expected: int) -> str:
    result = "little" if received < expected else "much"
    return (
        f"Wrong amount: {money.display(abs(expected - received))} too {result}, {money.display(expected)} "
        "expected."
    )


def _of_paid_twice(payment: Payment, credited: BankTransaction | None) -> str:
    if credited is not None:
        at = localtime(credited.paid_at)
        return (
            f"Paid twice: first paid by {credited.current_bank_transaction_id} on {at:%Y-%m-%d at %H:%M:%S}."
        )
    if payment.failure_code:
        return f"Paid after the payment had failed: {payment.failure_code}."
    return "Paid twice."


def _of_manual_return(payer_return: Return) -> str:
    at = localtime(payer_return.created_at)
    reference = f" ({payer_return.bank_reference})" if payer_return.bank_reference else ""
    return (
        f"The credit was sent back manually on {at:%Y-%m-%d at %H:%M:%S}{reference}. If the bank means that, "
        "dismiss this. If the money left twice, write it off."
    )


def _of_return(latest_return: Return) -> str:
    if latest_return.status == ReturnStatus.FAILED:
        return f"It could not be sent back: {latest_return.failure_code}."
    if latest_return.status == ReturnStatus.CANCELED:
        return "It was not sent back: the order was canceled before the bank received it."
    if latest_return.returned_at is not None:
        return "It was sent back, and the bank returned it."
    return "It is on its way back." if latest_return.status == ReturnStatus.PENDING else "It was sent back."
