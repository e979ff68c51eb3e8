"""The fields of a row as the audit trail stores them: no secrets, names masked."""

from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime
from typing import Any

from django.db.models import BinaryField, Model, QuerySet

from core.console import personal_data

# Fields with these parts in their names are secrets or encrypted, or contain other fields again.
HIDDEN_PARTS = ("_sealed", "_fingerprint", "password", "secret", "digest", "search_text")
# Fields with names of people, and with whom a destination reaches: records never change, and so outlive it.
NAME_FIELDS = personal_data.NAME_FIELDS | {"first_name", "last_name", "recipient"}
HIDDEN = "***"
Values = dict[str, Any]


def of_row(row: Model) -> Values:
    """The stored columns of a row that the audit trail may contain."""
    return {
        field.name: stored(field.name, getattr(row, field.attname))
        for field in row._meta.concrete_fields
        if not isinstance(field, BinaryField) and not _is_hidden(field.name)
    }


def of_form(fields: Mapping[str, Any], names: Iterable[str]) -> Values:
    return {name: HIDDEN if _is_hidden(name) else stored(name, fields.get(name)) for name in names}


def changes(before: Values, after: Values) -> tuple[Values, Values]:
    names = [name for name in (before | after) if before.get(name) != after.get(name)]
    return {name: before.get(name) for name in names}, {name: after.get(name) for name in names}


def filled(values: Values) -> Values:
    """The values of a new row without the empty ones."""
    return {name: value for name, value in values.items() if value not in (None, "", [], {})}


def stored(name: str, value: Any) -> Any:
    if isinstance(value, str) and name in NAME_FIELDS:
        return personal_data.masked_name(value)
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, list | tuple | set | frozenset | QuerySet):
        return sorted((stored("", each) for each in value), key=str)
    if isinstance(value, Mapping):
        return {str(key): stored(str(key), each) for key, each in value.items()}
    return value if isinstance(value, bool | int | float | None) else str(value)


def _is_hidden(name: str) -> bool:
    return any(part in name for part in HIDDEN_PARTS)
