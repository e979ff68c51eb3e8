"""Why something waits, as a person says it. Times are of the console's time zone."""

from datetime import timedelta

from django.template.defaultfilters import pluralize
from django.utils.timezone import localtime

from core import money
from payments.models import Payment, Status
from receipts.models import Kind, Outcome, Receipt, Resolution, Return, ReturnStatus
from transfers.models import Contradiction

UNITS = [(86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second")]


def span(length: timedelta) -> str:
    """ "3 hours": the largest unit of which there is one, rounded down."""
    seconds = int(length.total_seconds())
    if seconds < 1:
        return "less than a second"
    size, unit = next((size, unit) for size, unit in UNITS if seconds >= size)
    count = seconds // size
    return f"{count} {unit}{pluralize(count)}"


def of_receipt(
    receipt: Receipt,
    credited: Receipt | None,
    tried: Return | None,
    *,
    is_waiting: bool = False,
    same_as: Receipt | None = None,
) -> str:
    """credited: by what the receipt's payment was paid; tried: the latest return of its money.

    Of a reversal that nothing explains: the return of its credit by hand, which may be the same.
    is_waiting: a return of it, or booking it as a loss, waits for a second person. same_as: the transaction
    that this one probably is.
    """
    if same_as is not None:
        return of_probably_same(receipt, same_as)
    sentence = _outcome(receipt, credited)
    if is_waiting:
        return f"{sentence} What staff want to do waits for a second person."
    if tried is None:
        return sentence
    return f"{sentence} {_by_hand(tried) if receipt.kind == Kind.REVERSAL else _return(tried)}"


def of_probably_same(receipt: Receipt, other: Receipt) -> str:
    """Why the two are probably one, and what proves that they are two."""
    at = localtime(other.paid_at)
    start = f"Probably the same transaction as {other.id} of {at:%Y-%m-%d at %H:%M:%S}"
    days = " and ".join(sorted({f"{localtime(each.paid_at):%Y-%m-%d}" for each in (receipt, other)}))
    proof = f"import the statements of the whole of {days}: a second line with this reference and amount"
    end = "If the bank says that there is only one, count it once."
    if receipt.told_id and other.told_id:
        return (
            f"{start}: the bank gave two transaction ids, but its statement has one line for both. The money "
            f"cannot move until there is proof of two. For that, {proof} proves it. {end}"
        )
    return (
        f"{start}: one of them is only a statement line, the other is in no statement. The money cannot move "
        f"until there is proof of two. For that, {proof} proves it, and so does a transaction id of the bank "
        f"for the statement line. {end}"
    )


def of_notice(verdict: str, receipt: Receipt | None, *, source: str) -> str:
    if verdict == "unsigned":
        return "A notification without a signature. Its bank was asked and does not confirm it."
    if verdict == "unreadable":
        what = "A line of a statement" if source == "statement" else "A message of the bank"
        return f"{what} that nobody understands."
    if receipt is None:
        return "The bank speaks of an order that it did not get from us."
    return f"The bank told its transaction {receipt.transaction_id} differently before."


def of_refund(amount: int, failure_code: str) -> str:
    because = f": {failure_code}" if failure_code else ""
    return f"A refund of {money.display(amount)} came back from the bank{because}."


def of_contradiction(found: Contradiction) -> str:
    """What the bank says against our record, and what staff do about it."""
    amount, who = money.display(found.amount), found.route.partition(":")[2]
    if found.subject_id.startswith("pay_"):
        return _of_charge(found, amount, who)
    start = f"Order {found.subject_id} over {amount} is {found.state} here, and {who} says {found.answer}."
    return f"{start} {_TODO.get((found.state, found.answer), _ASK)}"


_ASK = "Ask the bank what became of the money, then dismiss this with its answer."
_TODO = {
    ("succeeded", "failed"): (
        "Ask the bank. If the money never left, book the order as returned; if it arrived, dismiss this."
    ),
    ("failed", "succeeded"): (
        "The money left, and its owner here has it again. No action books this: the merchant was told "
        "that the order failed, and may have used the money or sent it again. Ask the bank to recall it, "
        "or agree with the merchant, then dismiss this with what was agreed."
    ),
}


def _of_charge(found: Contradiction, amount: str, who: str) -> str:
    charged = amount
    if found.answer_amount is not None:
        charged = money.display(found.answer_amount)
        if found.answer_currency != money.CURRENCY:
            charged = f"{found.answer_amount} of the smallest unit of {found.answer_currency}"
    if found.state == Status.PENDING:
        return (
            f"Card payment {found.subject_id} asked for {amount}, and {who} charged {charged}. "
            f"Refund the charge at {who}, then book the payment as failed with the number of that refund. "
            "If the payment ended by itself meanwhile, dismiss this."
        )
    return (
        f"Card payment {found.subject_id} failed here, and {who} charged {charged}. "
        f"Refund the charge at {who}, then dismiss this with the number of that refund."
    )


_PLAINLY = {
    Outcome.WAITING: "It is not judged yet.",
    Outcome.APPLIED: "Its payment succeeded by it.",
    Outcome.DECLINED: "The bank declined the payment: no money moved.",
    Outcome.REVERSED: "The bank took money back.",
    Outcome.ORDERED: "The bank took back what it was told to.",
}


def _outcome(receipt: Receipt, credited: Receipt | None) -> str:
    outcome = Outcome(receipt.outcome)
    if outcome in _PLAINLY:
        return _PLAINLY[outcome]
    if receipt.resolution == Resolution.MERGED:
        return "Staff know that it is the same transaction as another, and it is counted once."
    if receipt.resolution == Resolution.ATTACHED:
        return f"It was attached to payment {receipt.payment_id}."
    if receipt.kind == Kind.REVERSAL:
        return "The bank took money back, and there is not enough of it here to take."
    return _held(receipt, receipt.payment, credited)


def _held(receipt: Receipt, payment: Payment | None, credited: Receipt | None) -> str:
    if payment is None:
        return "Nobody has this reference." if receipt.reference1 else "It came without a reference."
    if receipt.outcome == Outcome.AMOUNT_MISMATCH:
        return _amounts(receipt.amount, payment.amount)
    if receipt.outcome == Outcome.LATE and payment.expires_at is not None:
        return f"Paid {span(receipt.paid_at - payment.expires_at)} after the code expired."
    return _paid_already(payment, credited)


def _amounts(came: int, asked: int) -> str:
    word = "little" if came < asked else "much"
    return f"{money.display(abs(asked - came))} too {word}: {money.display(asked)} were asked for."


def _paid_already(payment: Payment, credited: Receipt | None) -> str:
    if credited is not None:
        at = localtime(credited.paid_at)
        return f"This payment was paid already by {credited.transaction_id} on {at:%Y-%m-%d at %H:%M:%S}."
    if payment.failure_code:
        return f"This payment had failed: {payment.failure_code}."
    return "This payment was paid already."


def _by_hand(made: Return) -> str:
    at = localtime(made.created_at)
    reference = f" ({made.bank_reference})" if made.bank_reference else ""
    return (
        f"The credit was sent back by hand on {at:%Y-%m-%d at %H:%M:%S}{reference}: if the bank means that, "
        "dismiss this; if the money left twice, it is our loss."
    )


def _return(tried: Return) -> str:
    if tried.status == ReturnStatus.FAILED:
        return f"It could not be sent back: {tried.failure_code}."
    if tried.status == ReturnStatus.CANCELED:
        return "It was not sent back: the order was canceled before the bank had it."
    if tried.returned_at is not None:
        return "It was sent back and came back."
    return "It is on its way back." if tried.status == ReturnStatus.PENDING else "It was sent back."
