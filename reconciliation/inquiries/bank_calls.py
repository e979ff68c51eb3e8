"""A question to a bank about one payment, and what came of it."""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

import banks
from banks import InquiryFailed, InquiryRequest, InquiryResult, UnreadableMessage, parallel
from merchants import bank_connections
from reconciliation.models import ConfirmationInquiry, Inquiry, InquiryOutcome

log = logging.getLogger("reconciliation")
# The clocks of banks are not ours.
CLOCK_SKEW = timedelta(minutes=5)
NOTHING_FOUND = InquiryResult(b"", ())
AnyInquiry = Inquiry | ConfirmationInquiry
"""About a payment that nobody confirmed, or about money that only a file or an unsigned message reports."""


@dataclass(frozen=True, slots=True)
class InquiryResponse:
    """What came of a question, and after how many seconds."""

    outcome: InquiryOutcome
    seconds: float
    found: InquiryResult = NOTHING_FOUND


# Stands for a bank that gave no answer within the time limit.
NO_RESPONSE = InquiryResponse(InquiryOutcome.NO_ANSWER, parallel.CALL_SECONDS)


def build_question(inquiry: AnyInquiry, now: datetime) -> InquiryRequest:
    if isinstance(inquiry, ConfirmationInquiry):
        return _confirmation_question(inquiry)
    payment = inquiry.payment
    return InquiryRequest(
        biller_id=payment.qr_code.biller_id,
        reference1=payment.qr_code.reference1,
        amount=payment.amount,
        starts_at=payment.created_at - CLOCK_SKEW,
        ends_at=now + CLOCK_SKEW,
    )


def _confirmation_question(inquiry: ConfirmationInquiry) -> InquiryRequest:
    return InquiryRequest(
        biller_id=inquiry.biller_id,
        reference1=inquiry.reference1,
        amount=inquiry.amount,
        starts_at=inquiry.paid_at - CLOCK_SKEW,
        ends_at=inquiry.paid_at + CLOCK_SKEW,
    )


def prepare_call(inquiry: AnyInquiry, now: datetime) -> Callable[[], InquiryResponse]:
    """The call that puts the question; it reads no database. Who cannot be asked is silent."""
    try:
        adapter = banks.get(inquiry.bank, bank_connections.credentials_of(inquiry.merchant_id))
    except Exception:
        log.exception("nobody can be asked about %s", inquiry)
        return lambda: InquiryResponse(InquiryOutcome.NO_ANSWER, 0)
    return partial(_call_bank, adapter, build_question(inquiry, now))


def _call_bank(adapter: banks.Bank, question: InquiryRequest) -> InquiryResponse:
    began = time.monotonic()
    try:
        found = adapter.inquire(question)
        outcome = InquiryOutcome.FOUND if found.transactions else InquiryOutcome.NOTHING
    except InquiryFailed:
        outcome, found = InquiryOutcome.NO_ANSWER, NOTHING_FOUND
    except UnreadableMessage as error:
        outcome, found = InquiryOutcome.UNREADABLE, InquiryResult(error.body, ())
    return InquiryResponse(outcome, time.monotonic() - began, found)
