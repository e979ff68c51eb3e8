"""The period of the first page: whole days in Bangkok."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from core import clock, dates

MAX_DAYS = 92
# A bar for each hour up to this many days, else a bar for each day.
MAX_DAYS_BY_HOUR = 2
HOUR, DAY = timedelta(hours=1), timedelta(days=1)


class PeriodError(Exception):
    """The dates in the address are not a period. The message is for staff."""


@dataclass(frozen=True, slots=True)
class Period:
    """The days from `first` to `last`, both included."""

    first: date
    last: date

    @property
    def start(self) -> datetime:
        return datetime.combine(self.first, time(), clock.BANGKOK)

    @property
    def end(self) -> datetime:
        """The instant after the last day."""
        return datetime.combine(self.last, time(), clock.BANGKOK) + DAY

    @property
    def step(self) -> timedelta:
        """The time that one bar of a chart covers."""
        return HOUR if (self.last - self.first).days < MAX_DAYS_BY_HOUR else DAY

    def instants(self) -> Iterator[datetime]:
        at = self.start
        while at < self.end:
            yield at
            at += self.step


def parse(query: Mapping[str, str], today: date) -> Period:
    """Return the period of `from` and `to` (YYYY-MM-DD); today without them. Raises PeriodError."""
    first = _parse_day(query.get("from") or today.isoformat())
    last = _parse_day(query.get("to") or max(first, today).isoformat())
    if last < first:
        raise PeriodError(_("The last day is before the first day."))
    if (last - first).days >= MAX_DAYS:
        raise PeriodError(_("Choose at most 92 days."))
    return Period(first, last)


def presets(today: date) -> list[tuple[Promise, Period]]:
    """The periods that one click chooses."""
    yesterday = today - DAY
    return [
        (_("Today"), Period(today, today)),
        (_("Yesterday"), Period(yesterday, yesterday)),
        (_("7 days"), Period(today - 6 * DAY, today)),
        (_("30 days"), Period(today - 29 * DAY, today)),
        (_("This month"), Period(today.replace(day=1), today)),
    ]


def _parse_day(text: str) -> date:
    try:
        day = dates.day(text)
    except dates.BuddhistYear as refusal:
        raise PeriodError(f"{refusal}.") from None
    except ValueError:
        day = date.min
    # Earlier and later days would overflow in a time zone.
    if not date(2000, 1, 1) <= day <= date(9000, 1, 1):
        raise PeriodError(_("Write dates as YYYY-MM-DD."))
    return day
