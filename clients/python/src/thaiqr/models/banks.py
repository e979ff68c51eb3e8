"""The banks that money can be sent to."""

from dataclasses import dataclass
from typing import Any

from thaiqr.decoding import Model, decode


@dataclass(frozen=True, kw_only=True)
class AccountDigits(Model):
    """How many digits an account number of a bank has."""

    min: int
    max: int


@dataclass(frozen=True, kw_only=True)
class Bank(Model):
    """A bank that withdrawals and refunds can name, by `bank_code` or `short_name`."""

    bank_code: str
    short_name: str
    name: str
    name_th: str
    account_digits: AccountDigits


@dataclass(frozen=True, kw_only=True)
class _Banks(Model):
    banks: tuple[Bank, ...]


def read_banks(data: Any) -> tuple[Bank, ...]:
    """Read the list of banks, which has no pages. Raises UnexpectedResponseError."""
    return decode(_Banks, data).banks
