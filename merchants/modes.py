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
            known = Mode.LIVE if Mode.LIVE in _in_use(request) else Mode.TEST
        request.mode = Mode(known)
    mode: Mode = request.mode
    return mode


def narrowed(request: Any) -> Mode | None:
    """The mode of the rows that lists show, or None if all merchants have it."""
    mode = chosen(request)
    return mode if _in_use(request) - {mode} else None


def follow(request: Any, mode: str) -> None:
    """Show this mode from now on, because the page shows a row of it."""
    if chosen(request) != mode:
        request.session[MODE] = mode
        request.mode = Mode(mode)


def _in_use(request: Any) -> set[str]:
    if not hasattr(request, "modes_in_use"):
        request.modes_in_use = set(Merchant.objects.order_by().values_list("mode", flat=True).distinct())
    modes: set[str] = request.modes_in_use
    return modes


def other(mode: Mode) -> Mode:
    return Mode.TEST if mode == Mode.LIVE else Mode.LIVE
