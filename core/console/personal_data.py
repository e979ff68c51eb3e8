"""Who may see names, accounts and messages of payers and other customers on pages of the console.

Staff with the permission `audit_trail.view_personal_data` see names, messages and the end of account numbers.
Others see initials and no digits. Outside of the console nothing is hidden.
"""

import unicodedata
from typing import Any

from django.utils.translation import gettext as _

from core import plain_text, request_context, vault

PERMISSION = "audit_trail.view_personal_data"
NAME_FIELDS = frozenset({"payer_name", "client_name", "account_name"})
"""Columns with names of customers."""
ACCOUNT_FIELDS = frozenset({"account_last4"})
END_FIELDS = frozenset({*ACCOUNT_FIELDS, "card_last4", "payer_account"})
"""What a search compares with the last four digits of an account or card."""
MASK = "x"
LEADING_VOWELS = "เแโใไ"
"""Thai writes them before the consonant that they are spoken after."""


def is_hidden() -> bool:
    return request_context.current().hides_personal_data


def masked_name(name: str) -> str:
    """The first letter of each word with its marks: `S*** J***`, and `ป***` of เปรม."""
    return " ".join(f"{_initial(word)}***" for word in plain_text.name(name).split())


def _initial(word: str) -> str:
    start = int(len(word) > 1 and word[0] in LEADING_VOWELS)
    end = start + 1
    while end < len(word) and unicodedata.category(word[end]).startswith("M"):
        end += 1
    return word[start:end]


def name(text: str) -> str:
    return masked_name(text) if is_hidden() else text


def account(number: str | None) -> str | None:
    """The end of an account number, or no digit of it."""
    return MASK * len(number) if number and is_hidden() else vault.masked(number)


def message(text: str) -> str:
    """A message that may name a customer."""
    return _("(hidden: you may not see personal data)") if is_hidden() else text


def conceal(row: Any) -> Any:
    """Mask the columns of a row for a page that only shows it. Never save the row after that."""
    if row is not None and is_hidden():
        for field in NAME_FIELDS.intersection(row.__dict__):
            setattr(row, field, masked_name(getattr(row, field) or ""))
        for field in ACCOUNT_FIELDS.intersection(row.__dict__):
            setattr(row, field, MASK * len(getattr(row, field) or ""))
    return row
