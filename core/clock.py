"""The clock. Views, tasks and commands read it and pass the time on; leases use the database's clock."""

from datetime import UTC, datetime, timedelta, timezone

from django.utils import dateformat
from django.utils.timezone import localtime
from django.utils.translation import get_language, gettext, ngettext_lazy

BANGKOK = timezone(timedelta(hours=7))
"""The time zone of Thai banks; it has no daylight saving time."""
BUDDHIST_OFFSET = 543
"""What a Thai date adds to the year."""
DURATION_UNITS = [
    (86_400, ngettext_lazy("%d day", "%d days")),
    (3_600, ngettext_lazy("%d hour", "%d hours")),
    (60, ngettext_lazy("%d minute", "%d minutes")),
    (1, ngettext_lazy("%d second", "%d seconds")),
]


def now() -> datetime:
    """The present instant in UTC, to the millisecond (what the database keeps)."""
    return to_millisecond(datetime.now(UTC))


def to_millisecond(at: datetime) -> datetime:
    return at.replace(microsecond=at.microsecond // 1000 * 1000)


def display(at: datetime) -> str:
    """For staff, in the time zone of the console."""
    return f"{localtime(at):%Y-%m-%d %H:%M:%S}"


def display_to_payer(at: datetime) -> str:
    """For payers, in Bangkok: "28 พ.ย. 2569 01:18 น.", or "28 Nov 2026 01:18" if the language is another."""
    unit = " น." if get_language() == "th" else ""
    return f"{display_day_to_payer(at)} {at.astimezone(BANGKOK):%H:%M}{unit}"


def display_day_to_payer(at: datetime) -> str:
    local = at.astimezone(BANGKOK)
    year = local.year + (BUDDHIST_OFFSET if get_language() == "th" else 0)
    return f"{local.day} {dateformat.format(local, 'M')} {year}"


def format_duration(duration: timedelta) -> str:
    """ "3 hours": rounded down to the largest unit."""
    seconds = int(duration.total_seconds())
    if seconds < 1:
        return gettext("less than a second")
    size, text = next((size, text) for size, text in DURATION_UNITS if seconds >= size)
    return str(text % (seconds // size))


def iso(at: datetime) -> str:
    """`2026-11-21T03:04:05.123Z`, the form of every timestamp in the API."""
    return at.astimezone(UTC).isoformat(timespec="milliseconds")[:-6] + "Z"


def iso_or_none(at: datetime | None) -> str | None:
    return None if at is None else iso(at)
