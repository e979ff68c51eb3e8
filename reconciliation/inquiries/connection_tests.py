"""Test the connection of a merchant to its bank: one inquiry about a code that nobody made.

The answer is shown and not stored, and it credits nothing.
"""

import logging
import time
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

import banks
from banks import InquiryFailed, InquiryRequest, UnknownBank, UnreadableMessage
from core.vault import CannotOpen
from merchants import bank_connections
from merchants.models import Merchant
from reconciliation.inquiries import rate_limit
from reconciliation.inquiries.rate_limit import BankBusy

log = logging.getLogger("reconciliation")
# References of codes have 20 characters, so no code has this one.
REFERENCE = "CONNECTIONTEST"
AMOUNT = 100
ConnectionOutcome = Literal[
    "answered", "credentials", "timeout", "unreachable", "other", "unreadable", "busy", "not_set_up"
]


@dataclass(frozen=True, slots=True)
class ConnectionTest:
    """What came back. milliseconds: of the call, 0 if there was none."""

    outcome: ConnectionOutcome
    milliseconds: int = 0


def run(merchant: Merchant, *, now: datetime) -> ConnectionTest:
    """Ask the merchant's bank once, within its rate limit and the time limit of inquiries.

    A merchant whose inquiries are paused is tested too: staff want to know whether the bank answers again.
    """
    try:
        adapter = banks.get(merchant.bank, bank_connections.credentials_of(merchant.pk))
    except (UnknownBank, CannotOpen):
        return ConnectionTest("not_set_up")
    question = InquiryRequest(merchant.biller_id, REFERENCE, AMOUNT, starts_at=now, ends_at=now)
    try:
        with rate_limit.exclusive_call(merchant.bank):
            found = _ask(adapter, question)
    except BankBusy:
        return ConnectionTest("busy")
    log.info("test of bank %s for %s: %s", merchant.bank, merchant.pk, found.outcome)
    return found


def _ask(adapter: banks.Bank, question: InquiryRequest) -> ConnectionTest:
    began = time.monotonic()
    outcome: ConnectionOutcome = "answered"
    try:
        adapter.inquire(question)
    except InquiryFailed as error:
        outcome = error.cause
    except UnreadableMessage:
        outcome = "unreadable"
    return ConnectionTest(outcome, round((time.monotonic() - began) * 1000))
