"""The first page of the console: what waits, and the figures of a period."""

from typing import Any
from urllib.parse import urlencode

from django.db import transaction
from django.http import HttpRequest

from console.home import attention, figures
from console.home.figures import Bar
from console.home.period import Period, PeriodError, parse, presets
from core import clock, money
from merchants import modes
from payments.cards import ACQUIRERS
from settlements import on_the_way


@transaction.atomic  # many small statements: each alone would be a transaction of its own
def context(request: HttpRequest) -> dict[str, Any]:
    """What `admin/index.html` shows. Figures need the right to view payments."""
    now = clock.now()
    today = now.astimezone(clock.BANGKOK).date()
    mode = modes.chosen(request)
    try:
        period, error = parse(request.GET, today), ""
    except PeriodError as wrong:
        period, error = parse({}, today), str(wrong)
    shown: dict[str, Any] = {
        "period": period,
        "period_error": error,
        "presets": [(label, _address(each), each == period) for label, each in presets(today)],
        "notices": list(attention.notices(request, mode, now)),
        "today": today,
    }
    if request.user.has_perm("payments.view_payment"):
        found = figures.read(period, mode)
        shown |= {"figures": found, "bars": _bars(found.bars, period)}
        if request.user.has_perm("settlements.view_acquirertransfer"):
            shown["on_the_way"] = on_the_way.read(ACQUIRERS[mode])
    if request.user.has_perm("merchants.view_merchant") and request.user.has_perm("payments.view_payment"):
        shown["merchants"] = figures.merchants(period, mode)
    if request.user.has_perm("reconciliation.view_inquiryanswer"):
        shown["banks"] = attention.banks(mode, now)
    return shown


def _address(period: Period) -> str:
    return "?" + urlencode({"from": period.first, "to": period.last})


def _bars(bars: list[Bar], period: Period) -> list[dict[str, Any]]:
    """Of each bar its time, what arrived, its height in percent, and the words below it."""
    highest = max((bar.received.amount for bar in bars), default=0) or 1
    by_hour = period.step.days == 0
    labelled = max(1, -(-len(bars) // 12))  # about a dozen labels fit
    return [
        {
            "text": f"{at:%Y-%m-%d %H:%M}" if by_hour else f"{at:%Y-%m-%d}",
            "received": f"{money.display(bar.received.amount)} ({bar.received.count:,})",
            "fees": money.display(bar.fees),
            "net": money.display(bar.net),
            "height": round(100 * bar.received.amount / highest, 2),
            "below": (f"{at:%H}" if by_hour else f"{at:%d}") if index % labelled == 0 else "",
        }
        for index, bar in enumerate(bars)
        for at in [bar.at.astimezone(clock.BANGKOK)]
    ]
