"""Rows of a list of the console as cells of a file: all columns whole.

The columns come from the list itself: fields of the model as they are stored, amounts in baht, and each time
in UTC and in Bangkok. `export_columns` of a list names others.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

from django.utils.text import capfirst
from django.utils.translation import gettext as _

from core import clock, money
from core.console import admin_columns, personal_data
from core.console.spreadsheets import Cell

PERMISSION = "audit_trail.export_lists"


@dataclass(frozen=True, slots=True)
class ExportColumn:
    """One field of a row and the columns that it becomes."""

    headers: tuple[str, ...]
    cells: Callable[[Any], tuple[Cell, ...]]


def cells(found: Iterable[Any], columns: Sequence[ExportColumn]) -> Iterator[list[Cell]]:
    """The cells of each row, masked for staff who may not see personal data."""
    for row in found:
        personal_data.conceal(row)
        yield [cell for column in columns for cell in column.cells(row)]


def columns_of(page: Any) -> list[ExportColumn]:
    """The columns of a list: those that `export_columns` names, or those of the list that are fields."""
    names = page.export_columns if page.export_columns is not None else _fields_of_list(page)
    found = [_column(page, name) for name in names]
    if any(column.headers[0].endswith(f" ({money.CURRENCY})") for column in found):
        found.append(ExportColumn((_("Currency"),), lambda row: (money.CURRENCY,)))
    return found


def _fields_of_list(page: Any) -> list[str]:
    """The primary key, and the columns of the list that are fields. `baht` stands for `amount`."""
    named = ["amount" if name == "baht" else name for name in page.list_display]
    names = [page.opts.pk.name, *(name for name in named if admin_columns.field_of(page.model, name))]
    return list(dict.fromkeys(names))


def _column(page: Any, name: str) -> ExportColumn:
    field = admin_columns.field_of(page.model, name)
    label = str(capfirst(field.verbose_name if field else _(name.replace("_", " "))))
    show = getattr(page, f"export_{name}", None)
    value: Callable[[Any], Any] = show or (lambda row: getattr(row, field.attname))
    kind = field.get_internal_type() if field else ""
    if admin_columns.AMOUNT_NAME.search(name) and kind in ("", "BigIntegerField"):
        return ExportColumn(
            (f"{label} ({money.CURRENCY})",),
            lambda row: (None if (satang := value(row)) is None else money.decimal(satang),),
        )
    if kind == "DateTimeField":
        headers = (_("%(name)s (UTC)") % {"name": label}, _("%(name)s (Bangkok)") % {"name": label})
        return ExportColumn(headers, lambda row: _times(value(row)))
    return ExportColumn((label,), lambda row: (_cell(value(row)),))


def _times(at: datetime | None) -> tuple[Cell, Cell]:
    if at is None:
        return None, None
    utc, bangkok = (at.astimezone(zone).replace(tzinfo=None, microsecond=0) for zone in (UTC, clock.BANGKOK))
    return utc, bangkok


def _cell(value: Any) -> Cell:
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None or isinstance(value, int | date):
        return value
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
