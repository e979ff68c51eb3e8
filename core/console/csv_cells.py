"""Cells of CSV files that people open with a spreadsheet, which runs some texts as formulas."""

import csv
import re
from typing import Any

# Source: OWASP, "CSV Injection". The wide signs are those of East Asian keyboards. Excel in many countries
# separates cells by a semicolon, also inside quotes, so a formula may begin behind one.
_SIGNS = r"[=+\-@\t\r\n＝＋－＠]"
_FORMULA = re.compile(rf"(\A|;)(?={_SIGNS})")
_ESCAPED = re.compile(rf"(\A|;)'(?={_SIGNS})")


def writer(file: Any) -> Any:
    """A writer that quotes every cell: a text may have any separator in it."""
    return csv.writer(file, quoting=csv.QUOTE_ALL)


def escape_cell(text: str) -> str:
    """`text`, with a quote where a spreadsheet would run it."""
    return _FORMULA.sub(r"\1'", text)


def unescape_cell(cell: str) -> str:
    """The text that `escape_cell` was given."""
    return _ESCAPED.sub(r"\1", cell)
