"""Cells of CSV files that people open with a spreadsheet, which runs some texts as formulas."""

# Source: OWASP, "CSV Injection".
FORMULA_SIGNS = ("=", "+", "-", "@", "\t", "\r", "\n")
QUOTE = "'"


def escape_cell(text: str) -> str:
    """`text`, with a quote in front where a spreadsheet would run it."""
    return QUOTE + text if text.startswith(FORMULA_SIGNS) else text


def unescape_cell(cell: str) -> str:
    """The text that `escape_cell` was given."""
    return cell[1:] if cell.startswith(QUOTE) and cell[1:].startswith(FORMULA_SIGNS) else cell
