"""What merchants decide about the exceptions of their payments, by the resolutions that staff use.

Money only goes to the account that it came from, so a stolen key cannot redirect it. Everything else stays
with staff: other accounts, other payments, merges, and money without a payment.
"""

from collections.abc import Callable
from datetime import datetime
from enum import StrEnum
from functools import partial

from audit_trail.acts import ActRefused
from core import ids
from merchants.models import Merchant
from payments.errors import PaymentNotFound
from payments.match_results import OF_PAYMENTS, MatchResult
from payments.models import OPEN_STATUSES, Payment, PaymentException
from reconciliation.exceptions import resolution_records, resolutions
from reconciliation.exceptions.errors import (
    ExceptionNotAcceptable,
    ExceptionNotFound,
    ExceptionNotReturnable,
)

# Resolutions have a reason. The API does not ask for one.
DEFAULT_NOTE = "Decided by the merchant."
# Why a decision is refused, as a merchant reads it. The texts of staff name people and other objects.
REASONS: dict[type[ActRefused], str] = {
    resolution_records.ProbableDuplicate: "the bank probably reported the same money twice, and the operator "
    "must decide",
    resolution_records.NotConfirmed: "only an uploaded statement reports this money, and a second source "
    "must confirm it first",
    resolution_records.BeingReversed: "the bank is taking this money back",
    resolution_records.NoExcess: "it is not more than the amount of its payment, so it has no excess",
    resolution_records.NoWayBack: "it cannot be sent to the payer's account from here, and the operator must "
    "decide",
}
Decide = Callable[..., object]
Refused = type[ExceptionNotAcceptable] | type[ExceptionNotReturnable]


class ReturnedPart(StrEnum):
    """What a return sends back."""

    ALL = "all"
    EXCESS = "excess"  # an over-payment pays its payment with the payment's amount; the rest goes back


def find_payment(*, merchant: Merchant, payment_id: str) -> Payment:
    """Raises PaymentNotFound."""
    found = Payment.objects.of(merchant).filter(pk=payment_id)
    return ids.find(payment_id, "pay_", found.first, PaymentNotFound)


def find(*, merchant: Merchant, payment_id: str, exception_id: str) -> PaymentException:
    """Raises PaymentNotFound, ExceptionNotFound."""
    payment = find_payment(merchant=merchant, payment_id=payment_id)
    return ids.find(exception_id, "rcp_", payment.exceptions.filter(pk=exception_id).first, ExceptionNotFound)


def accept(exception: PaymentException, *, note: str = DEFAULT_NOTE, now: datetime) -> PaymentException:
    """Let the money pay its payment. Raises ExceptionNotAcceptable."""
    _check_time(exception, ExceptionNotAcceptable)
    return _decide(exception, partial(resolutions.accept, note=note, now=now), ExceptionNotAcceptable)


def send_back(
    exception: PaymentException, *, part: str, note: str = DEFAULT_NOTE, now: datetime
) -> PaymentException:
    """Order a return of the money to the payer's account. Raises ExceptionNotReturnable.

    An excess whose return failed is all that is left, so both parts of it are the same.
    """
    is_whole = part == ReturnedPart.ALL or exception.status == "excess_open"
    if not is_whole:
        _check_time(exception, ExceptionNotReturnable)
    order = resolutions.send_back if is_whole else partial(resolutions.return_excess, must_send=True)
    return _decide(exception, partial(order, note=note, now=now), ExceptionNotReturnable)


def _check_time(exception: PaymentException, refused: Refused) -> None:
    """Only staff can find out from the bank whether the money belongs to the payment."""
    if exception.reason == MatchResult.TIME_MISMATCH and exception.status in OPEN_STATUSES:
        raise refused(why=f"{OF_PAYMENTS[MatchResult.TIME_MISMATCH].meaning}, and the operator must decide")


def _decide(
    exception: PaymentException,
    decide: Decide,
    refused: Refused,
) -> PaymentException:
    """Decide in the caller's transaction, and return the exception as it is then."""
    try:
        decide(exception.id)
    except ActRefused as refusal:
        raise refused(why=_why(exception, refusal)) from None
    exception.refresh_from_db()
    return exception


def _why(exception: PaymentException, refusal: ActRefused) -> str:
    if (why := REASONS.get(type(refusal))) is not None:
        return why
    exception.refresh_from_db(from_queryset=PaymentException.objects.select_related("payment"))
    if exception.status not in OPEN_STATUSES:
        return f"it is {exception.status}"
    return f"its payment is {exception.payment.status}"
