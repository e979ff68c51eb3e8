"""What staff see of a file before its import: its form, its columns, its totals and its first lines."""

from collections.abc import Iterator
from typing import Any

from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from core import money, personal_data
from core.clock import BANGKOK
from reconciliation.statements import reasons
from reconciliation.statements.contents import FileContents
from reconciliation.statements.line_storage import error_without_content
from reconciliation.statements.lines import FileLine
from reconciliation.statements.statement_file import StatementFile, Table
from reconciliation.statements.table_format import COLUMNS, OPTIONAL

FORMATS = {"bot": _("Cross-bank bill payment file"), "csv": "CSV", "xlsx": "Excel"}
KINDS = {"credit": _("Credit"), "reversal": _("Debit")}
LABELS = {
    "date": _("Date"), "time": _("Time"), "biller_id": _("Biller id"), "reference1": _("Reference 1"),
    "reference2": _("Reference 2"), "reference3": _("Reference 3"), "amount": _("Amount"), "type": _("Type"),
    "payer_name": _("Payer"), "payer_bank_code": _("Payer's bank"),
}  # fmt: skip
VALUES = {
    "date": "21/11/2569, 2026-11-21, 21 พ.ย. 2569", "time": "9:05:00", "biller_id": "099400016550100",
    "amount": "1500.5, 1,500.50", "type": "credit, CR, เครดิต; debit, DR, เดบิต", "payer_bank_code": "004",
}  # fmt: skip
MAX_NAMES = 4


def column_help() -> list[dict[str, Any]]:
    """Each column that a table may have: its name, whether it is needed, other names and values."""
    return [
        {
            "name": column,
            "label": LABELS[column],
            "is_needed": column not in OPTIONAL,
            "names": ", ".join([*others[:2], *others[-2:]][:MAX_NAMES]),
            "values": VALUES.get(column, ""),
        }
        for column, others in COLUMNS.items()
    ]


def shown(file: StatementFile, found: FileContents) -> dict[str, Any]:
    """The context of the page."""
    return {
        "facts": list(_facts(file, found)),
        "columns": _columns(file.table) if file.table else [],
        "ignored": _ignored(file.table) if file.table else "",
        "lines": [_line(line) for line in found.first],
        "unreadable": [(line.number, _reason(line)) for line in found.unreadable],
        "problems": [reasons.translated(problem) for problem in found.problems],
        "found": found,
    }


def _reason(line: FileLine) -> str:
    return reasons.translated(error_without_content(line))


def _facts(file: StatementFile, found: FileContents) -> Iterator[tuple[Any, Any]]:
    encoding = file.encoding.removesuffix("-sig").upper()
    sheet = file.table.sheet if file.table else ""
    yield _("Form"), ", ".join(filter(None, [str(FORMATS[file.format]), encoding, sheet]))
    if file.table:
        yield (
            _("Names of the columns"),
            gettext("in line %(number)s") % {"number": file.table.layout.header.number},
        )
    yield _("Lines"), f"{found.line_count:,}"
    for kind, count in sorted(found.counts.items()):
        yield KINDS[kind], f"{count:,}: {money.display(found.amounts[kind])}"
    if found.paid_from and found.paid_until:
        yield _("Paid from"), found.paid_from
        yield _("Paid until"), found.paid_until


def _columns(table: Table) -> list[tuple[Any, str]]:
    """Each of our columns, and its name in the file."""
    names = table.layout.header.cells
    return [
        (
            LABELS[column],
            names[place].strip() if (place := table.layout.places.get(column)) is not None else "",
        )
        for column in COLUMNS
    ]


def _ignored(table: Table) -> str:
    known = set(table.layout.places.values())
    cells = enumerate(table.layout.header.cells)
    return ", ".join(cell.strip() for place, cell in cells if place not in known and cell.strip())


def _line(line: FileLine) -> dict[str, Any]:
    if line.parsed is None:
        return {"number": line.number, "error": _reason(line)}
    movement = line.parsed
    references = (movement.reference2, movement.reference3)
    return {
        "number": line.number,
        "paid_at": movement.paid_at.astimezone(BANGKOK),
        "kind": KINDS[movement.kind],
        "amount": money.display(movement.amount),
        "biller_id": movement.biller_id,
        "reference1": movement.reference1,
        "references": ", ".join(filter(None, references)),
        "payer": ", ".join(filter(None, [personal_data.name(movement.payer_name), movement.payer_bank_code])),
    }
