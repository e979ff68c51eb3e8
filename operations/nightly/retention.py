"""What goes after its time, by the nightly job `retention`, and the partitions of the next months.

Tables with partitions lose whole months: a row is kept until the days of its setting have passed for the
last row of its month. Deliveries and slip checks have a unique key over all months, so they are deleted in
batches.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta

from django.conf import settings
from django.db import DatabaseError
from django.db.models import Model

from core.database import partitions
from reconciliation.models import InquiryAnswer
from reconciliation.slips import checking
from request_log.models import RequestRecord
from webhooks.delivery import old_deliveries
from webhooks.models import DeliveryAttempt


def days_kept() -> dict[type[Model], int | None]:
    """For how many days each table with partitions keeps its rows; None: for ever."""
    return {
        RequestRecord: settings.REQUEST_LOG_RETENTION_DAYS,
        DeliveryAttempt: settings.WEBHOOK_ATTEMPT_RETENTION_DAYS,
        InquiryAnswer: settings.INQUIRY_ANSWER_RETENTION_DAYS or None,
    }


def apply(now: datetime) -> Iterator[str]:
    """Make partitions ahead, drop old ones, delete old rows of other tables. Yields a line about each change.

    Raises DatabaseError at the end if a table could not be changed.
    """
    errors: list[Exception] = []
    for model, days in days_kept().items():
        try:
            for name in partitions.make_ahead(model, now):
                yield f"made {name}"
            for name in partitions.drop_old(model, now - timedelta(days=days)) if days is not None else ():
                yield f"dropped {name}"
        # The other tables need theirs.
        except DatabaseError as error:
            errors.append(error)
    if days := settings.SLIP_CHECK_RETENTION_DAYS:
        yield f"deleted {checking.delete_old(now - timedelta(days=days))} slip checks"
    if days := settings.WEBHOOK_DELIVERY_RETENTION_DAYS:
        # Younger ones still have attempts.
        days = max(days, settings.WEBHOOK_ATTEMPT_RETENTION_DAYS)
        yield f"deleted {old_deliveries.delete(now - timedelta(days=days))} deliveries"
    if errors:
        raise errors[0]
