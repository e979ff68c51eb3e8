"""The monthly report to print, for the accountant."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from django.utils.translation import get_language
from django.utils.translation import gettext as _

from console.exports import monthly
from console.exports.monthly import MerchantMonth, Month
from core import clock, money
from core.drawing.pdf import ROW, Column, Document

TIME_FORM = "%Y-%m-%d %H:%M:%S"


def write(month: Month, reports: Sequence[MerchantMonth], now: datetime) -> bytes:
    """The report as PDF, in the language of the reader. `now` matters only for a month that goes on.

    Raises pdf.TooManyRows.
    """
    has_ended = month.end <= now
    title = _("Monthly report %(month)s") % {"month": month}
    document = Document(title, at=month.end if has_ended else now, language=get_language() or "en")
    last = month.end - timedelta(seconds=1)
    facts = [
        (_("Period (Bangkok)"), f"{month.start.strftime(TIME_FORM)} – {last.strftime(TIME_FORM)}"),
        (_("Currency"), money.CURRENCY),
    ]
    if len(reports) != 1:
        facts.append((_("Merchants"), str(len(reports))))
    document.facts(facts)
    if not has_ended:
        at = now.astimezone(clock.BANGKOK).strftime(TIME_FORM)
        document.add_line(
            _("The month has not ended. The figures are of %(time)s.") % {"time": at}, bold=True
        )
    for report in reports:
        _add(document, report)
    return bytes(document.output())


def _add(document: Document, report: MerchantMonth) -> None:
    merchant = report.merchant
    *lines, (verdict, *_difference) = monthly.lines_of(report)
    # A short table stays on one page with its merchant.
    document.heading(merchant.name, room=min(len(lines) + 4, 20) * ROW)
    document.add_line(f"{merchant.pk} ({merchant.get_mode_display()})", small=True)
    rows = [
        (str(label), counterpart, "" if count is None else f"{count:,}", f"{money.decimal(amount):,}")
        for label, counterpart, count, amount in lines
    ]
    columns = [
        Column(_("Line"), 0.42),
        Column(_("Bank"), 0.25),
        Column(_("Count"), 0.13, is_number=True),
        Column(_("Amount (THB)"), 0.2, is_number=True),
    ]
    document.add_rows(columns, rows, has_sum=True)
    document.add_line(str(verdict), small=report.agrees, bold=not report.agrees)
