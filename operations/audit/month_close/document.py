"""A closed month to print: what its signed text says, and what proves that text."""

from datetime import datetime

import orjson
from django.utils.translation import get_language, gettext as _

from core import money
from core.drawing.pdf import Column, Document
from operations.audit.daily_close.document import add_proof
from operations.audit.month_close import month_page
from operations.audit.month_close.questions import LABELS
from operations.models import MonthClose


def write(close: MonthClose) -> bytes:
    """The close as PDF, in the language of the reader. It shows what the signed text says, and no more."""
    body = orjson.loads(close.body)
    title, ends_at = _("Closed month %(month)s") % {"month": close}, datetime.fromisoformat(body["ends_at"])
    document = Document(title, at=ends_at, language=get_language() or "en")
    document.facts([(_("Number"), str(close.number)), (_("Currency"), body["currency"])])
    for name, lines in month_page.tables(body):
        document.heading(name, room=60)
        document.add_rows(_columns(_("Line")), [_cells(*line) for line in lines], has_sum=True)
    on_the_way = [(_(LABELS[each["kind"]]), each) for each in body["on_the_way"]]
    correction = _("Correction of %(month)s")
    corrections = [(f"{correction % each}: {each['type']}", each) for each in body["corrections"]]
    for title, found in ((_("On the way"), on_the_way), (_("Corrections"), corrections)):
        if found:
            document.heading(title, room=30)
            cells = [_cells(f"{what} {each['subject']}", each["amount"]) for what, each in found]
            document.add_rows(_columns(_("What")), cells, has_sum=False)
    add_proof(document, close, f"month-close {close}")
    return bytes(document.output())


def _columns(first: str) -> list[Column]:
    return [Column(first, 0.75), Column(_("Amount (THB)"), 0.25, is_number=True)]


def _cells(label: str, amount: int) -> list[str]:
    return [label, f"{money.decimal(amount):,}"]
