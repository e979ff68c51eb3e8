"""Money that arrived for a payment and did not fit: its status for the merchant, and events."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from core.database import rows
from payments.models import HELD_STATUSES, OPEN_STATUSES, Payment, PaymentException
from payments.shapes import exception_event_data, newest_exceptions
from webhooks import events
from webhooks.models import EventType


def report(new: Sequence[PaymentException]) -> None:
    """Store new exceptions of payments, whose locks the caller holds."""
    rows.insert_many(new)
    first = Payment.objects.filter(pk__in={each.payment_id for each in new}, has_exceptions=False)
    first.update(has_exceptions=True)


def set_status(exception_id: str, status: str) -> None:
    """Store what became of an exception. The caller holds the lock of its bank transaction."""
    PaymentException.objects.filter(pk=exception_id).update(status=status)


def publish(exception_ids: Iterable[str], *, now: datetime) -> None:
    """Publish what became of these exceptions, in the commit of the change. Other ids are ignored.

    Money on its way to the payer has no event: the bank can still refuse it.
    """
    found = PaymentException.objects.filter(pk__in=exception_ids).select_related("payment")
    published = []
    for each in found.prefetch_related(newest_exceptions("payment__exceptions")):
        is_open = each.status in OPEN_STATUSES
        if is_open or each.status not in HELD_STATUSES:
            kind = EventType.PAYMENT_EXCEPTION if is_open else EventType.PAYMENT_EXCEPTION_RESOLVED
            data = exception_event_data(each, now)
            published.append(events.NewEvent(each.payment.merchant_id, kind, each.id, data, now))
    if published:
        events.publish_many(published)
