"""Test the connection of a merchant to its bank: one inquiry about a code that nobody made.

The answer is shown and not stored, and it credits nothing.
"""

import logging
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

import banks
from banks import InquiryRequest, UnknownBank
from core.vault import CannotOpen
from merchants import bank_connections
from merchants.models import Merchant
from reconciliation.inquiries import bank_calls, rate_limit
from reconciliation.inquiries.rate_limit import BankBusy
from reconciliation.models import InquiryOutcome

log = logging.getLogger("reconciliation")
REFERENCE = "CONNECTIONTEST"  # references of codes have 20 characters, so no code has this one
AMOUNT = 100
ConnectionOutcome = Literal[
    "answered", "credentials", "timeout", "unreachable", "other", "unreadable", "busy", "not_set_up"
]


@dataclass(frozen=True, slots=True)
class ConnectionTest:
    """What came back. milliseconds: of the call, 0 if there was none."""

    outcome: ConnectionOutcome
    milliseconds: int = 0


def run(merchant: Merchant, bank: str, *, now: datetime) -> ConnectionTest:
    """Ask a bank of the merchant once, within its rate limit and the time limit of inquiries.

    A merchant whose inquiries are paused is tested too: staff want to know whether the bank answers again.
    """
    try:
        adapter = banks.get(bank, bank_connections.credentials_of(merchant.pk, bank))
    except (UnknownBank, CannotOpen):
        return ConnectionTest("not_set_up")
    question = InquiryRequest(
        merchant.terms_at(bank).biller_id, REFERENCE, AMOUNT, starts_at=now, ends_at=now
    )
    try:
        with rate_limit.exclusive_call(bank):
            answer = bank_calls.ask(adapter, question)
    except BankBusy:
        return ConnectionTest("busy")
    is_unreadable = answer.outcome == InquiryOutcome.UNREADABLE
    outcome: ConnectionOutcome = answer.failure or ("unreadable" if is_unreadable else "answered")
    found = ConnectionTest(outcome, round(answer.seconds * 1000))
    log.info("test of bank %s for %s: %s", bank, merchant.pk, found.outcome)
    return found
