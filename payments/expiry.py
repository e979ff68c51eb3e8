"""The rule of expiry: a pending payment is expired from `expires_at` on, also before a task has stored it."""

from datetime import datetime

from django.db.models import Q

PENDING = "pending"


def is_overdue(status: str, expires_at: datetime | None, now: datetime) -> bool:
    """Return whether nobody paid in time. Payments by card have no `expires_at`."""
    return status == PENDING and expires_at is not None and expires_at <= now


def overdue(now: datetime) -> Q:
    """Return the same rule as a filter."""
    return Q(status=PENDING, expires_at__lte=now)
