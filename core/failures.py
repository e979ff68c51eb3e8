"""The catalogue of failure codes: why a payment, a refund or a withdrawal failed.

A new reason is one entry here and its translation; one of a card also has an error
(`payments.card_responses.DECLINES`). The reference, `docs/errors.md`, the console and timelines read it. The
adapter of a bank translates the bank's own reasons into these codes.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from django.utils.translation import gettext, gettext_noop

DECLINED_BY_BANK, PROCESSING_ERROR = "declined_by_bank", "processing_error"
REJECTED_BY_BANK, RETURNED_BY_BANK = "rejected_by_bank", "returned_by_bank"
INVALID_ACCOUNT, BANK_UNREACHABLE = "invalid_account", "bank_unreachable"
REJECTED_BY_ACQUIRER, VOID_REJECTED = "rejected_by_acquirer", "void_rejected"
VOID_WINDOW_CLOSED = "void_window_closed"
REJECTED_BY_STAFF, NEVER_ARRIVED = "rejected_by_staff", "never_arrived"
_OTHER_CARD = gettext_noop("The customer can pay with another card.")
_TRY_AGAIN = gettext_noop("The customer can try again or pay otherwise.")
_OTHER_WAY = gettext_noop("Give the money back in another way.")
_OTHER_ACCOUNT = gettext_noop("Ask the customer for another account, and refund again.")
_WITHDRAW_ELSEWHERE = gettext_noop("The merchant can withdraw it to another account.")
_WITHDRAW_AGAIN = gettext_noop("The merchant can withdraw it again.")


@dataclass(frozen=True, slots=True)
class Failure:
    """A reason. words: what happened, within a sentence. advice: what to do next, for merchants and staff.

    is_retryable: the same again, with nothing changed, may succeed.
    """

    words: str
    advice: str
    is_retryable: bool = False


_REFUSED = gettext_noop("the bank refused the transfer")
_NO_ACCOUNT = gettext_noop("the account does not exist")
_NOT_DONE = gettext_noop("the bank did not carry out the transfer")
_REJECTED = Failure(gettext_noop("the operator rejected it"), gettext_noop("Ask the operator."))
OF_PAYMENTS = {
    DECLINED_BY_BANK: Failure(gettext_noop("the bank declined the payment"), _TRY_AGAIN, is_retryable=True),
    "insufficient_funds": Failure(gettext_noop("the card has too little money"), _OTHER_CARD),
    "card_declined": Failure(gettext_noop("the card was declined"), _OTHER_CARD),
    "expired_card": Failure(gettext_noop("the card has expired"), _OTHER_CARD),
    PROCESSING_ERROR: Failure(
        gettext_noop("the card payment could not be processed"), _TRY_AGAIN, is_retryable=True
    ),
}
OF_REFUNDS = {
    REJECTED_BY_BANK: Failure(_REFUSED, _OTHER_ACCOUNT),
    INVALID_ACCOUNT: Failure(_NO_ACCOUNT, _OTHER_ACCOUNT),
    NEVER_ARRIVED: Failure(_NOT_DONE, gettext_noop("Refund again."), is_retryable=True),
    REJECTED_BY_STAFF: _REJECTED,
    REJECTED_BY_ACQUIRER: Failure(gettext_noop("the acquirer refused the refund"), _OTHER_WAY),
    VOID_REJECTED: Failure(gettext_noop("the bank refused to void the payment"), _OTHER_WAY),
    VOID_WINDOW_CLOSED: Failure(
        gettext_noop("the bank sends money back only on the day of the payment, before 23:00"), _OTHER_WAY
    ),
}
OF_WITHDRAWALS = {
    REJECTED_BY_BANK: Failure(_REFUSED, _WITHDRAW_ELSEWHERE),
    INVALID_ACCOUNT: Failure(_NO_ACCOUNT, _WITHDRAW_ELSEWHERE),
    RETURNED_BY_BANK: Failure(gettext_noop("the bank sent the money back"), _WITHDRAW_ELSEWHERE),
    BANK_UNREACHABLE: Failure(
        gettext_noop("the bank could not be reached"), _WITHDRAW_AGAIN, is_retryable=True
    ),
    NEVER_ARRIVED: Failure(_NOT_DONE, _WITHDRAW_AGAIN, is_retryable=True),
    REJECTED_BY_STAFF: _REJECTED,
}
CATALOGUE = OF_PAYMENTS | OF_REFUNDS | OF_WITHDRAWALS


def words(code: str | None) -> str:
    """What happened, within a sentence, in the language of the reader. An unknown code stays as it is."""
    found = CATALOGUE.get(code or "")
    return (code or "-") if found is None else gettext(found.words)


def words_and_code(code: str) -> str:
    """For staff who speak with a merchant's engineer, who knows the code."""
    return f"{words(code)} ({code})" if code in CATALOGUE else code


def advice(failures: Mapping[str, Failure], code: str | None) -> str:
    """What to do next, in the language of the reader; for an unknown code that of a refusal by the bank."""
    found = failures.get(code or "") or next(iter(failures.values()))
    return gettext(found.advice)


def described(failures: Mapping[str, Failure]) -> str:
    """The description of a field in the reference."""
    retryable = [code for code, failure in failures.items() if failure.is_retryable]
    return f"Null, or why it failed: {_listed(failures)}. To try again may help after {_listed(retryable)}."


def _listed(codes: Iterable[str]) -> str:
    return ", ".join(f"`{code}`" for code in codes)
