"""One inquiry to a bank: the question, the call and its result."""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

from django.db.models import F, Subquery
from django.db.models.functions import Coalesce

import banks
from banks import InquiryFailed, InquiryRequest, InquiryResult, UnreadableMessage, parallel
from banks.http_client import FailureCause
from core import request_context
from merchants import bank_connections
from qrcodes.models import QrCode
from reconciliation.models import ConfirmationInquiry, Inquiry, InquiryAnswer, InquiryOutcome

log = logging.getLogger("reconciliation")
# Inquiries ask for 5 minutes more on both sides, so that a wrong clock of a bank hides no payment.
SEARCH_MARGIN = timedelta(minutes=5)
NOTHING_FOUND = InquiryResult(b"", ())
AnyInquiry = Inquiry | ConfirmationInquiry


@dataclass(frozen=True, slots=True)
class InquiryResponse:
    """The result of an inquiry and its duration. failure: why there was no answer."""

    outcome: InquiryOutcome
    seconds: float
    found: InquiryResult = NOTHING_FOUND
    failure: FailureCause | None = None


# The result of a call that did not end within the time limit.
NO_RESPONSE = InquiryResponse(InquiryOutcome.NO_ANSWER, parallel.CALL_SECONDS)


def record_response(payment_id: str, response: InquiryResponse, now: datetime) -> None:
    """Store the answer, or count it with the answer before if both say the same."""
    said = {"outcome": response.outcome, "transaction_count": len(response.found.transactions)}
    latest = {
        "duration_ms": round(response.seconds * 1000),
        "answered_at": now,
        "request_id": request_context.current().request_id,
    }
    before = InquiryAnswer.objects.filter(payment_id=payment_id).order_by("-pk").values("pk")[:1]
    # With the payment, PostgreSQL looks at one month only.
    is_repeated = InquiryAnswer.objects.filter(payment_id=payment_id, pk=Subquery(before), **said).update(
        answer_count=F("answer_count") + 1,
        first_answered_at=Coalesce("first_answered_at", "answered_at"),
        **latest,
    )
    if not is_repeated:
        InquiryAnswer.objects.create(payment_id=payment_id, **said, **latest)


def build_question(inquiry: AnyInquiry, now: datetime) -> InquiryRequest:
    if isinstance(inquiry, ConfirmationInquiry):
        code: ConfirmationInquiry | QrCode = inquiry
        amount, starts_at, ends_at = inquiry.amount, inquiry.paid_at, inquiry.paid_at
    else:
        code, payment = inquiry.payment.qr_code, inquiry.payment
        amount, starts_at, ends_at = payment.amount, payment.created_at, now
    starts_at, ends_at = starts_at - SEARCH_MARGIN, ends_at + SEARCH_MARGIN
    return InquiryRequest(code.biller_id, code.reference1, amount, starts_at, ends_at)


def prepare_call(inquiry: AnyInquiry, now: datetime) -> Callable[[], InquiryResponse]:
    """Return the call, which uses no database. A bank without a connection counts as no answer."""
    try:
        adapter = banks.get(inquiry.bank, bank_connections.credentials_of(inquiry.merchant_id, inquiry.bank))
    except Exception:
        log.exception("inquiry %s cannot be made", inquiry)
        return lambda: InquiryResponse(InquiryOutcome.NO_ANSWER, 0)
    return partial(ask, adapter, build_question(inquiry, now))


def ask(adapter: banks.Bank, question: InquiryRequest) -> InquiryResponse:
    """Call the bank."""
    began = time.monotonic()
    failure: FailureCause | None = None
    try:
        found = adapter.inquire(question)
        outcome = InquiryOutcome.FOUND if found.transactions else InquiryOutcome.NOTHING
    except InquiryFailed as error:
        outcome, found, failure = InquiryOutcome.NO_ANSWER, NOTHING_FOUND, error.cause
    except UnreadableMessage as error:
        outcome, found = InquiryOutcome.UNREADABLE, InquiryResult(error.body, ())
    return InquiryResponse(outcome, time.monotonic() - began, found, failure)
