"""Whether somebody who claims a refund knows what only its payer knows."""

import hmac
import re
from collections.abc import Sequence

from core import plain_text
from payments import payers
from payments.models import Payment

_ENDS_WITH_DIGITS = re.compile(r"[0-9]{4}\Z", re.ASCII)


def is_right(payment: Payment, *, slip_references: Sequence[str], last_digits: str) -> bool:
    """Whether each proof that is given is right. One is enough. All are compared in constant time."""
    references = _slip_references(payment)
    # Some banks report only the last digits of the account that paid.
    ends = _ENDS_WITH_DIGITS.findall(payers.reported(payment).account)
    found = [_is_one_of(plain_text.compact(each).upper(), references) for each in slip_references]
    if last_digits:
        found.append(_is_one_of(last_digits, ends))
    return bool(found) and all(found)


def _slip_references(payment: Payment) -> list[str]:
    """What the slip of the payer can show as its reference.

    Only of the money that paid: somebody else can pay the same code again, and would have a slip of it.
    """
    credits = payment.bank_transactions.credited()
    found = [name for each in credits for name in (each.slip_reference, *each.bank_transaction_ids)]
    return [plain_text.compact(name).upper() for name in found if name]


def _is_one_of(text: str, expected: list[str]) -> bool:
    found = [hmac.compare_digest(text.encode(), each.encode()) for each in expected]
    return any(found)
