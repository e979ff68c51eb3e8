"""What merchants decide about the exceptions of their payments, by the resolutions that staff use.

Money only goes to the account that it came from, so a stolen key cannot redirect it. Everything else stays
with staff: other accounts, other payments, merges, and money without a payment.
"""

from collections.abc import Callable
from datetime import datetime
from functools import partial

from audit_trail.acts import ActRefused
from core import ids
from core.errors import StateError
from merchants.models import Merchant
from payments.match_results import OF_PAYMENTS, MatchResult
from payments.models import OPEN_STATUSES, Payment, PaymentException
from reconciliation.exceptions import resolutions
from reconciliation.exceptions.errors import ExceptionNotAcceptable, ExceptionNotFound, ExceptionNotReturnable
from reconciliation.matching.refusals import MerchantRefusal

DEFAULT_NOTE = "Decided by the merchant."  # Resolutions have a reason. The API does not ask for one.
Refused = type[StateError]


def find(merchant: Merchant, payment_id: str, exception_id: str) -> PaymentException:
    """Raises PaymentNotFound, ExceptionNotFound."""
    payment = Payment.objects.of(merchant).find(payment_id)
    return ids.find(exception_id, "btx_", payment.exceptions.all(), ExceptionNotFound)


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
    is_whole = part == "all" or exception.status == "excess_open"
    if not is_whole:
        _check_time(exception, ExceptionNotReturnable)
    order = resolutions.send_back if is_whole else partial(resolutions.return_excess, must_send=True)
    return _decide(exception, partial(order, note=note, now=now), ExceptionNotReturnable)


def _check_time(exception: PaymentException, refused: Refused) -> None:
    """Only staff can find out from the bank whether the money belongs to the payment."""
    if exception.reason == MatchResult.TIME_MISMATCH and exception.status in OPEN_STATUSES:
        raise refused(why=f"{OF_PAYMENTS[MatchResult.TIME_MISMATCH].meaning}, and the operator must decide")


def _decide(exception: PaymentException, decide: Callable[..., object], refused: Refused) -> PaymentException:
    """Decide in the caller's transaction, and return the exception as it is then.

    Raises MerchantSuspended. Staff may still decide.
    """
    exception.payment.merchant.check_open()
    try:
        decide(exception.id)
    except MerchantRefusal as refusal:
        raise refused(why=refusal.why) from None
    except ActRefused:
        exception.refresh_from_db(from_queryset=PaymentException.objects.select_related("payment"))
        is_open = exception.status in OPEN_STATUSES
        why = f"its payment is {exception.payment.status}" if is_open else f"it is {exception.status}"
        raise refused(why=why) from None
    exception.refresh_from_db()
    return exception
