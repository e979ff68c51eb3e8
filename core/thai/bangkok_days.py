"""Days and months in Bangkok, as filters of lists name them."""

from calendar import monthrange
from collections.abc import Mapping
from datetime import datetime, timedelta

from django.utils.translation import gettext_lazy as _

from core import dates
from core.clock import BANGKOK

CHOICES = (
    ("today", _("Today")),
    ("yesterday", _("Yesterday")),
    ("week", _("The last 7 days")),
    ("month", _("This month")),
    ("last-month", _("Last month")),
)
# A choice, day or month; or the first and the last day.
PARAMETERS = ("date", "date_from", "date_to")


def between(value: str, now: datetime) -> tuple[datetime, datetime] | None:
    """The start of a choice, a day (2026-11-23) or a month (2026-11), and the instant after it; or None."""
    today = now.astimezone(BANGKOK).replace(hour=0, minute=0, second=0, microsecond=0)
    tomorrow, month = today + timedelta(days=1), today.replace(day=1)
    spans = {
        "today": (today, tomorrow),
        "yesterday": (today - timedelta(days=1), today),
        "week": (today - timedelta(days=6), tomorrow),
        "month": (month, tomorrow),
        "last-month": ((month - timedelta(days=1)).replace(day=1), month),
    }
    return spans[value] if value in spans else _typed(value)


def span(query: Mapping[str, str], now: datetime) -> tuple[datetime, datetime] | None:
    """The first instant of what PARAMETERS name, and the first after it. An empty end is open.

    None if a value is no day, or if the first day is after the last.
    """
    value, first, last = (query.get(name, "") for name in PARAMETERS)
    if value:
        return between(value, now)
    starts, ends = (between(each, now) if each else OPEN for each in (first, last))
    if starts is None or ends is None or starts[0] >= ends[1]:
        return None
    return starts[0], ends[1]


OPEN = datetime(2000, 1, 1, tzinfo=BANGKOK), dates.END


def _typed(value: str) -> tuple[datetime, datetime] | None:
    try:
        if dates.is_day(value):
            return dates.midnight(day := dates.day(value)), dates.end_of(day)
        first = dates.day(f"{value}-01")
    except ValueError:
        return None
    last = first.replace(day=monthrange(first.year, first.month)[1])
    return dates.midnight(first), dates.end_of(last)
