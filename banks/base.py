"""What an adapter to a bank can do. Plain data in and out: adapters know no model of ours."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol

from core.errors import AuthenticationError, NotFound

Kind = Literal["credit", "decline", "reversal"]


class UnknownBank(NotFound):
    code = "bank_not_found"
    message = "No bank {name}."


class BadSignature(AuthenticationError):
    """Nobody proved to be the bank: nothing of the message is kept."""

    code = "invalid_signature"
    message = "The signature is missing, wrong or too old."


class Unreadable(Exception):
    """The bank said something that its adapter does not understand: it is parked for staff."""


@dataclass(frozen=True, slots=True)
class Notice:
    """A bank's word about one movement of money.

    amount: satang, at least 1. paid_at: the bank's time in UTC, to the millisecond.
    References and payer are empty where the bank does not tell them.
    """

    bank_transaction_id: str
    kind: Kind
    biller_id: str
    reference1: str
    reference2: str
    reference3: str
    amount: int
    paid_at: datetime
    payer_name: str
    payer_bank_code: str
    payer_account: str


class Bank(Protocol):
    """One bank, configured."""

    def verify(self, *, headers: Mapping[str, str], body: bytes, now: datetime) -> None:
        """Whether the bank itself sent this. `headers` ignores case. Raises BadSignature."""

    def parse_notice(self, body: bytes) -> Notice:
        """What a verified message says. Raises Unreadable."""

    def answer(self, notice: Notice | None) -> dict[str, str]:
        """The body of the 200 after which the bank stops sending; None for a message that was parked."""
