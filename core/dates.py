"""Read the dates and instants that people and programs write, in the API, the console and commands."""

import re
from datetime import UTC, date, datetime, time, timedelta, tzinfo

from django.utils.translation import gettext as _

from core.clock import BANGKOK, BUDDHIST_OFFSET

# The year 2569 of the Buddhist calendar is 2026. Thai software and people write such years.
BUDDHIST_YEARS = range(2401, 3000)
BEGINNING, END = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
"""The bounds of `0001-01-01` and `9999-12-31`, which programs send for no bound, in every time zone."""
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
# ISO 8601 as Python, Java and PostgreSQL write it. A plus sign that was not escaped arrives as a space.
_INSTANT = re.compile(
    r"\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}(:\d{2})?(\.\d{1,9})?([Zz]|[+ -]\d{2}(:?\d{2})?)?", re.ASCII
)


class BuddhistYear(ValueError):
    """The year is one of the Buddhist calendar."""

    def __init__(self, year: int) -> None:
        text = _("%(year)d is a year of the Buddhist calendar: write %(gregorian)d")
        super().__init__(text % {"year": year, "gregorian": year - BUDDHIST_OFFSET})


def is_day(text: str) -> bool:
    """Whether the text has the form of a date without a time."""
    return _DAY.fullmatch(text) is not None


def buddhist_year(text: str) -> BuddhistYear | None:
    """The year at the beginning of a date, if it is one of the Buddhist calendar."""
    year = int(text[:4]) if re.match(r"\d{4}-", text, re.ASCII) else 0
    return BuddhistYear(year) if year in BUDDHIST_YEARS else None


def buddhist(at: date) -> str:
    """A date, or a time without a zone, with the year of the Buddhist calendar: `2569-11-21`."""
    return f"{at.year + BUDDHIST_OFFSET}{str(at)[4:]}"


def day(text: str) -> date:
    """The date of a text such as `2026-11-21`. Raises ValueError, BuddhistYear."""
    if not is_day(text):
        raise ValueError(text)
    if refusal := buddhist_year(text):
        raise refusal
    return date.fromisoformat(text)


def instant(text: str) -> datetime:
    """The instant of a date with a time, in UTC unless it has an offset. Raises ValueError, BuddhistYear."""
    if not _INSTANT.fullmatch(text):
        raise ValueError(text)
    if refusal := buddhist_year(text):
        raise refusal
    found = datetime.fromisoformat(text[:11] + text[11:].upper().replace(" ", "+"))
    if found.tzinfo is None:
        found = found.replace(tzinfo=UTC)
    try:
        return found.astimezone(UTC)
    except OverflowError:
        return BEGINNING if found.year == 1 else END


def midnight(on: date, zone: tzinfo = BANGKOK) -> datetime:
    try:
        return datetime.combine(on, time(), zone).astimezone(UTC)
    except OverflowError:
        return BEGINNING if on.year == 1 else END


def end_of(on: date, zone: tzinfo = BANGKOK) -> datetime:
    """The instant at which the date ends and the next one begins."""
    return END if on == date.max else midnight(on + timedelta(days=1), zone)
