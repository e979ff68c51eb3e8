"""The sessions of staff: where they began, and how to end them."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.http import HttpRequest

from console.models import StaffSession
from core import request_context

# In a session: when, from where and in which browser it began.
BEGAN_AT, ADDRESS, BROWSER = "began_at", "address", "browser"
# When its user last confirmed who they are.
CONFIRMED_AT = "confirmed_at"
MAX_BROWSER_LENGTH = 300
# Each browser also names those before it, which it imitates.
BROWSERS = (("Edg", "Edge"), ("OPR", "Opera"), ("Firefox", "Firefox"), ("FxiOS", "Firefox"),
            ("CriOS", "Chrome"), ("Chrome", "Chrome"), ("Safari", "Safari"))  # fmt: skip
SYSTEMS = (("Android", "Android"), ("iPhone", "iPhone"), ("iPad", "iPad"), ("Windows", "Windows"),
           ("Macintosh", "macOS"), ("CrOS", "ChromeOS"), ("Linux", "Linux"))  # fmt: skip


@dataclass(frozen=True, slots=True)
class ShownSession:
    """A session as its owner sees it. `id` is a digest: the key itself would let others take it over."""

    id: str
    began_at: datetime | None
    last_used_at: datetime
    address: str
    browser: str
    is_current: bool


def begin(request: HttpRequest, *, now: datetime) -> None:
    """Note where a session begins, and remove those that have ended."""
    request.session[BEGAN_AT] = int(now.timestamp())
    request.session[ADDRESS] = request_context.current().address
    request.session[BROWSER] = request.META.get("HTTP_USER_AGENT", "")[:MAX_BROWSER_LENGTH]
    confirm(request, now=now)
    StaffSession.objects.ended(now).delete()


def confirm(request: HttpRequest, *, now: datetime) -> None:
    """Note in the session that its user has just proven who they are (`audit_trail.confirmation`)."""
    request.session[CONFIRMED_AT] = int(now.timestamp())
    request_context.set_needs_confirmation(False)


def shown(user: Any, current_key: str | None, *, now: datetime) -> list[ShownSession]:
    """The sessions of a person, the last used first."""
    rows = StaffSession.objects.filter(user=user).active(now).order_by("-last_used_at")
    return [_shown(row, row.get_decoded(), is_current=row.pk == current_key) for row in rows]


def end(user: Any, *, but: str | None = None, only: str | None = None) -> int:
    """End the sessions of a person, and return how many there were.

    but: the key of a session that stays. only: the `ShownSession.id` of the one to end.
    """
    found = StaffSession.objects.filter(user=user).exclude(pk=but or "")
    if only is not None:
        found = found.filter(
            pk__in=[row.pk for row in found if request_context.session_digest(row.pk) == only]
        )
    count, _by_model = found.delete()
    return int(count)


def _shown(row: StaffSession, data: dict[str, Any], *, is_current: bool) -> ShownSession:
    began = data.get(BEGAN_AT)
    return ShownSession(
        request_context.session_digest(row.pk),
        datetime.fromtimestamp(began, UTC) if began else None,
        row.last_used_at,
        data.get(ADDRESS, ""),
        browser_name(data.get(BROWSER, "")),
        is_current,
    )


def browser_name(user_agent: str) -> str:
    """Such as `Firefox, Windows`; empty if it is unknown."""
    tables = (BROWSERS, SYSTEMS)
    found = [next((name for part, name in table if part in user_agent), "") for table in tables]
    return ", ".join(filter(None, found))
