"""A question to a bank about one payment, and what came of it."""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

import banks
from banks import Found, NotAnswered, Question, Unreadable, calling
from merchants import links
from receipts.models import ConfirmationInquiry, Inquiry, Said

log = logging.getLogger("receipts")
# The clocks of banks are not ours.
SKEW = timedelta(minutes=5)
NOTHING_SAID = Found(b"", ())
Asked = Inquiry | ConfirmationInquiry
"""About a payment that nobody confirmed, or about money that only a file or an unsigned message reports."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of a question, and after how many seconds."""

    said: Said
    seconds: float
    found: Found = NOTHING_SAID


# Of a bank that said nothing for as long as any may take.
SILENCE = Answer(Said.NO_ANSWER, calling.CALL_SECONDS)


def of(inquiry: Asked, now: datetime) -> Question:
    if isinstance(inquiry, ConfirmationInquiry):
        return _about_money(inquiry)
    payment = inquiry.payment
    return Question(
        biller_id=payment.qr_code.biller_id,
        reference1=payment.qr_code.reference1,
        amount=payment.amount,
        since=payment.created_at - SKEW,
        until=now + SKEW,
    )


def _about_money(inquiry: ConfirmationInquiry) -> Question:
    return Question(
        biller_id=inquiry.biller_id,
        reference1=inquiry.reference1,
        amount=inquiry.amount,
        since=inquiry.paid_at - SKEW,
        until=inquiry.paid_at + SKEW,
    )


def ready(inquiry: Asked, now: datetime) -> Callable[[], Answer]:
    """The call that puts the question; it reads no database. Who cannot be asked is silent."""
    try:
        adapter = banks.get(inquiry.bank, links.of(inquiry.merchant_id))
    except Exception:
        log.exception("nobody can be asked about %s", inquiry)
        return lambda: Answer(Said.NO_ANSWER, 0)
    return partial(_ask, adapter, of(inquiry, now))


def _ask(adapter: banks.Bank, question: Question) -> Answer:
    began = time.monotonic()
    try:
        found = adapter.inquire(question)
        said = Said.FOUND if found.notices else Said.NOTHING
    except NotAnswered:
        said, found = Said.NO_ANSWER, NOTHING_SAID
    except Unreadable as error:
        said, found = Said.UNREADABLE, Found(error.body, ())
    return Answer(said, time.monotonic() - began, found)
