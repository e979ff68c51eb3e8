"""Why a line or a file cannot be read: in English as stored, and in the language of whoever looks at it."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.test import Client
from django.utils import translation

from reconciliation.models import StatementLine
from reconciliation.statements import import_jobs, reasons, statement_file, xlsx_files
from tests.conftest import Shop
from tests.reconciliation.statements.statement_files import HEADER, bot_file, csv_file, detail
from tests.reconciliation.statements.test_import_in_console import begin, malee, preview, texts

__all__ = ["malee"]
FOLDER = Path(reasons.__file__).parent
# The place of the reason among the arguments.
REASONS_OF = {
    "UnreadableMessage": 0,
    "InvalidStatementFile": 0,
    "add": 0,
    "parse_text": 1,
    "parse_pattern": 1,
}
CONSTANTS = [
    xlsx_files.OLD,
    xlsx_files.FAILED,
    *xlsx_files.REASONS.values(),
    statement_file.UNKNOWN,
    statement_file.NO_TABLE,
]
TOTALS = "2 credits of 15.00 THB and 0 debits of 0.00 THB"


def written() -> Iterator[str]:
    """Each reason in the code, with `...` for its values."""
    for file in sorted(FOLDER.glob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and (place := REASONS_OF.get(name_of(node.func))) is not None:
                yield from texts_in(node.args[place])
            if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "error":
                yield from texts_in(node.value)


def name_of(function: ast.expr) -> str:
    """Of a function. `add` only adds a reason to the problems of a file."""
    if isinstance(function, ast.Attribute):
        return function.attr if getattr(function.value, "id", "") == "problems" else ""
    return getattr(function, "id", "")


def texts_in(value: ast.expr) -> Iterator[str]:
    """None for a name: those are CONSTANTS, and texts that come from here."""
    if isinstance(value, ast.IfExp):
        yield from texts_in(value.body)
    elif isinstance(value, ast.Constant):
        yield str(value.value)
    elif isinstance(value, ast.JoinedStr):
        parts = [part.value if isinstance(part, ast.Constant) else "..." for part in value.values]
        yield "".join(map(str, parts))


def test_each_reason_in_the_code_has_a_text_to_translate() -> None:
    known = {re.sub(r"%\(\w+\)s", "...", text) for text in reasons.TEXTS}
    found = list(written())
    assert len(found) > 40
    assert [text for text in found if text not in known and "reference" not in text] == []


def test_reason_is_shown_in_thai() -> None:
    for reason in [*CONSTANTS, *filter(None, written())]:
        with translation.override("th"):
            shown = reasons.translated(reason)
        assert re.search("[ก-๙]", shown), shown
        with translation.override("en"):
            assert reasons.translated(reason) == reason


def test_values_of_a_reason_are_translated_and_quotes_stay() -> None:
    with translation.override("th"):
        assert reasons.translated("reference 1 is longer than 35 characters") == "อ้างอิง 1 ยาวเกิน 35 ตัวอักษร"
        assert "'1.5.5'" in reasons.translated("the amount cannot be '1.5.5'")
        trailer = reasons.translated(f"The trailer in line 3 states {TOTALS}, but the lines are {TOTALS}.")
        assert trailer.count(reasons.translated(TOTALS)) == 2
        assert reasons.translated("Somchai") == "Somchai"


@pytest.mark.django_db
@pytest.mark.slow
def test_thai_pages_of_an_import_have_thai_reasons(shop: Shop, malee: Client) -> None:
    malee.defaults["HTTP_ACCEPT_LANGUAGE"] = "th"
    with translation.override("th"):
        reason = reasons.translated("the amount cannot be '…'")
        problem = reasons.translated("The file ends without a trailer: it may have been cut off.")
        missing = reasons.translated("Columns are missing: date.").split()[0]
    seen = preview(malee, bot_file(detail(), detail(amount="O'Hara"), end=b""))
    assert (texts(seen).count(reason), problem in texts(seen)) == (2, True)
    statement_page = begin(malee, seen).redirect_chain[-1][0]
    import_jobs.run_due()
    line = StatementLine.objects.get(result="unreadable")
    assert line.error == "the amount cannot be '…'"  # the same for everybody
    assert reason in texts(malee.get(statement_page))
    assert problem in texts(malee.get(statement_page))
    for page in ("", f"{line.pk}/change/"):
        assert reason in texts(malee.get(f"/admin/reconciliation/statementline/{page}"))
    assert missing in texts(preview(malee, csv_file(header=HEADER.replace("date", "x"))))
