"""Live and test money, which the console never shows on one page.

An address chooses by `?mode=`, and the session keeps the choice. A page of one row follows its row.
"""

from typing import Any

from core.console.admin_lists import MODE
from merchants.models import Merchant, Mode


def chosen(request: Any) -> Mode:
    """Live money, unless somebody chose the other or there is no live merchant."""
    if not hasattr(request, "mode"):
        session = getattr(request, "session", {})  # a worker that writes a file has none
        if (asked := request.GET.get(MODE)) in Mode.values and session.get(MODE) != asked:
            session[MODE] = asked
        if (known := session.get(MODE)) not in Mode.values:
            known = Mode.LIVE if Merchant.objects.filter(mode=Mode.LIVE).exists() else Mode.TEST
        request.mode = Mode(known)
    mode: Mode = request.mode
    return mode


def narrowed(request: Any) -> Mode | None:
    """The mode of the rows that lists show, or None if all merchants have it."""
    if not hasattr(request, "has_other_mode"):
        request.has_other_mode = Merchant.objects.exclude(mode=chosen(request)).exists()
    return chosen(request) if request.has_other_mode else None


def follow(request: Any, mode: str) -> None:
    """Show this mode from now on, because the page shows a row of it."""
    if chosen(request) != mode:
        request.session[MODE] = mode
        request.mode, request.has_other_mode = Mode(mode), True


def other(mode: Mode) -> Mode:
    return Mode.TEST if mode == Mode.LIVE else Mode.LIVE
