from typing import Annotated, TypedDict

from core.http.objects import between, up_to
from core.thai import thaibanks
from core.thai.thaibanks import Bank

MAX_NAME_LENGTH = 140


class AccountDigits(TypedDict):
    """How many digits an account number of the bank has."""

    min: Annotated[int, between(thaibanks.MIN_DIGITS, thaibanks.MAX_DIGITS)]
    max: Annotated[int, between(thaibanks.MIN_DIGITS, thaibanks.MAX_DIGITS)]


class BankObject(TypedDict):
    """A bank in Thailand."""

    bank_code: Annotated[str, {"pattern": "^[0-9]{3}$"}]
    short_name: Annotated[str, up_to(10), "As banking apps show it. `bank_code` of a request takes it too."]
    name: Annotated[str, up_to(100), "In English."]
    name_th: Annotated[str, up_to(100), "In Thai."]
    account_digits: AccountDigits


class BankList(TypedDict):
    """All banks, by code."""

    banks: list[BankObject]


def bank_object(bank: Bank) -> BankObject:
    shortest, longest = bank.digits
    return {
        "bank_code": bank.code,
        "short_name": bank.alias.upper(),
        "name": bank.name,
        "name_th": bank.name_th,
        "account_digits": {"min": shortest, "max": longest},
    }
