"""Why a line or a file cannot be read, in the language of the person who looks at it.

Reasons are stored in English, with the values in them, as the command prints them. TEXTS has each of them
again, for the translation: a test compares both.
"""

import re

from django.utils.translation import gettext
from django.utils.translation import gettext_noop as _

TEXTS = (
    # What a line can have.
    _("the biller id"),
    _("the payer's bank"),
    _("the payer's name"),
    _("credit or debit"),
    _("date and time"),
    _("the amount"),
    _("reference %(number)s"),
    _("far more"),
    # What is wrong with it.
    _("%(field)s is longer than %(count)s characters"),
    _("%(field)s contains control characters"),
    _("%(field)s cannot be %(value)s"),
    _("the amount cannot be %(value)s"),
    _("the amount is zero"),
    _("the amount is zero or too large"),
    _("the type cannot be %(value)s"),
    _("reference 1 is a number, and may have lost digits: format it as text"),
    _("the date cannot be %(value)s"),
    _("the time cannot be %(value)s"),
    _("the time is of another day than the date"),
    _("the date has another time than the time"),
    _("the time is missing"),
    _("date or time is longer than %(count)s characters"),
    _("the year cannot be %(value)s"),
    _("there is no time %(value)s"),
    _("the file does not write all dates with the day first, so this one is not clear"),
    _("it is longer than %(count)s bytes"),
    _("a cell contains a line break or another control character"),
    _("it has only %(count)s cells"),
    _("it contains bytes that are not valid %(encoding)s"),
    _("it contains bytes that are not valid CP874"),
    _("no line begins like this one"),
    _("a line has %(count)s characters, this one %(found)s"),
    # What is wrong with a file.
    _("Line %(number)s is a header where a trailer is missing."),
    _("Line %(number)s has no header before it."),
    _("Line %(number)s is a trailer without a header."),
    _("Line %(number)s is a trailer that cannot be read."),
    _("The file ends without a trailer: it may have been cut off."),
    _("The trailer in line %(number)s states %(stated)s, but the lines are %(found)s."),
    _("%(credits)s credits of %(credit)s and %(debits)s debits of %(debit)s"),
    _("And %(count)s more of the kind."),
    # Why nothing of a file is imported.
    _("The file is empty."),
    _("It is neither a cross-bank bill payment file nor a CSV file with a line of column names."),
    _("No visible sheet of the Excel file has a line with the names of the columns."),
    _(
        "Line %(number)s has names of columns between %(separator)s, and line %(other_number)s between "
        "%(other)s. Correct the line in which they are part of a text."
    ),
    _("commas"),
    _("semicolons"),
    _("tabs"),
    _("Several sheets have the columns of a statement: %(names)s. Keep one."),
    _(
        "Line %(number)s has a line break, or another control character, in a cell. Remove it: "
        "nothing up to the names of the columns may have one."
    ),
    _("The line with the names of the columns cannot be read: %(reason)s."),
    _("Columns are missing: %(names)s."),
    _("Columns are duplicated: %(names)s."),
    _("The record that begins in line %(number)s is longer than %(count)s characters. Is a quote missing?"),
    _(
        "Line %(number)s ends in another way than the lines above it, so a cell may hold a line break. "
        "Give all lines the same kind of end."
    ),
    _(
        "Line %(number)s has a quote that is not closed, or not doubled inside a cell. Correct it: "
        "nobody can tell where the cell ends."
    ),
    _(
        "Line %(number)s names the columns again, but otherwise than line %(header_number)s. "
        "Import each table as a file of its own."
    ),
    _(
        "Line %(number)s is a line of the statement, but stands above the names of the columns. "
        "Move it below them."
    ),
    _("It is an Excel file of the old kind (.xls), or has a password. Save it as CSV and import that."),
    _("The Excel file is too large: at most 100,000 rows of 20 columns. Save it as CSV and import that."),
    _("Another Excel file is being read. Try again in a minute."),
    _("The Excel file cannot be read. Save it as CSV and import that."),
    _("It is not an Excel file (.xlsx), or it is broken."),
    _("It was written by the bank %(code)s, but %(bank)s is %(own_code)s."),
    _("It is not a statement of %(bank)s: merchants of other banks have %(ids)s."),
    _("No merchant of %(bank)s has a biller id of this file: %(ids)s."),
)


def translated(reason: str) -> str:
    """The reason in the language of the present request. A text that is no reason stays as it is."""
    for text, pattern in _PATTERNS:
        if found := pattern.fullmatch(reason):
            return gettext(text) % {name: translated(value) for name, value in found.groupdict().items()}
    return reason


# The most exact one first.
_PATTERNS = [
    (text, re.compile(re.sub(r"%\\\((\w+)\\\)s", r"(?P<\1>.+)", re.escape(text)), re.DOTALL))
    for text in sorted(TEXTS, key=lambda text: text.count("%("))
]
