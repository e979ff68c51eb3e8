"""The catalogue of match results: which payment a bank transaction belongs to, or why it belongs to none.

A new result is a line of `MatchResult` and its translation. If its money waits for a decision, it is an entry
of `HELD` too. Lists, timelines, sentences, the API, `docs/errors.md`, constraints and the audit read both.
"""

from dataclasses import dataclass

from django.db import models
from django.utils.translation import gettext_noop


class MatchResult(models.TextChoices):
    """The labels are for the console, and in lower case within the sentences of timelines."""

    PENDING = "", "Not matched yet"
    APPLIED = "applied", "Paid its payment"
    DECLINED = "declined", "Declined by the bank"
    REVERSED = "reversed", "Deducted from the balance"
    ORDERED = "ordered", "Requested by a refund"  # the bank reports the reversal that we ordered
    UNMATCHED = "unmatched", "Unknown reference"  # of a reversal: its credit is unknown
    DUPLICATE = "duplicate", "Paid twice"
    TIME_MISMATCH = "time_mismatch", "Paid too early"
    AMOUNT_MISMATCH = "amount_mismatch", "Wrong amount"
    LATE = "late", "Paid after expiry"


@dataclass(frozen=True, slots=True)
class HeldMoney:
    """Money that stays in the suspense account until somebody decides."""

    sentence: str  # why, for staff
    meaning: str  # why, for merchants
    advice: str  # what they can do


# Held for a payment, which shows it.
OF_PAYMENTS = {
    MatchResult.DUPLICATE: HeldMoney(
        gettext_noop("Paid twice: first paid by %(id)s on %(at)s."),
        "the payment had succeeded or failed already",
        "Return it.",
    ),
    MatchResult.TIME_MISMATCH: HeldMoney(
        gettext_noop("Paid too early: %(duration)s before the code was made."),
        "the bank says that it was paid before the code existed",
        "Return it, or ask the operator to accept it.",
    ),
    MatchResult.AMOUNT_MISMATCH: HeldMoney(
        gettext_noop("Wrong amount: %(difference)s, %(expected)s expected."),
        "it is more or less than the amount of the payment",
        "Accept it or return it. Of too much, you can return the excess.",
    ),
    MatchResult.LATE: HeldMoney(
        gettext_noop("Paid after expiry: %(duration)s after the code had expired."),
        "it was paid after the code had expired",
        "Accept it or return it.",
    ),
}
HELD = {
    MatchResult.UNMATCHED: HeldMoney(
        gettext_noop("Unknown reference."),
        "no payment has its reference",
        "Ask the customer for the slip, and name `unmatched_money.exception_id` to the operator.",
    ),
    **OF_PAYMENTS,
}
PAYMENT_RESULTS, HELD_RESULTS = list(OF_PAYMENTS), list(HELD)


def described() -> str:
    """The description of the reason of an exception in the reference."""
    return f"{'; '.join(f'`{result}`: {held.meaning}' for result, held in OF_PAYMENTS.items())}."
