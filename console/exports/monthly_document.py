"""The accountant's pack to print and to sign: the totals of a month, on one or two pages for a merchant."""

from collections.abc import Sequence
from datetime import datetime

from django.utils.translation import get_language, gettext as _

from console.exports import monthly, pack
from console.exports.monthly import MerchantMonth, Month
from core import money
from core.drawing.pdf import LINE, ROW, Column, Document

BLANK = "." * 70


def write(month: Month, reports: Sequence[MerchantMonth], now: datetime) -> bytes:
    """The totals as PDF, in the language of the reader. Raises pdf.TooManyRows."""
    has_ended = month.end <= now
    title = _("Monthly report %(month)s") % {"month": month.name}
    document = Document(title, at=month.until(now), language=get_language() or "en")
    if len(reports) != 1:
        document.facts([(_("Merchants"), str(len(reports)))])
    if not has_ended:
        document.add_line(monthly.unfinished(now), bold=True)
    for report in reports:
        _add(document, report, month)
    if has_ended:
        document.heading(_("Signed"), room=9 * LINE)
        for name in (_("Name"), _("Date"), _("Signature")):
            document.ln(LINE)
            document.facts([(name, BLANK)])
    return bytes(document.output())


def _add(document: Document, report: MerchantMonth, month: Month) -> None:
    *lines, (verdict, *_difference) = report.printed
    (_label, name), *facts = pack.facts(report.merchant, month)
    # A short table stays on one page with its merchant.
    document.heading(name, room=min(len(lines) + 9, 25) * ROW)
    document.facts(facts)
    rows = [
        (label, company, "" if count is None else f"{count:,}", f"{money.decimal(amount):,}")
        for label, company, count, amount in lines
    ]
    columns = [
        Column(_("Line"), 0.42),
        Column(_("Bank or acquirer"), 0.25),
        Column(_("Count"), 0.13, is_number=True),
        Column(_("Amount (THB)"), 0.2, is_number=True),
    ]
    document.add_rows(columns, rows, has_sum=False)
    document.add_line(verdict, small=report.agrees, bold=not report.agrees)
    for company, fee, tax in pack.withheld(report):
        text = _("Withholding tax: %(tax)s, %(rate)s %% of the fees of %(company)s over %(fee)s without VAT.")
        words = {"tax": money.display(tax), "fee": money.display(fee), "company": company}
        document.add_line(text % {**words, "rate": pack.WITHHELD})
