"""Rows in order, by an index that has them so for each kind only, such as (merchant, status, created_at).

An index of all rows of a merchant would be written twice for each payment
(docs/decisions/97-cheaper-rows.md).
"""

from collections.abc import Sequence
from itertools import product
from typing import Any, TypeVar

from django.db.models import Field, Model, QuerySet

Rows = TypeVar("Rows", bound=QuerySet[Any])


def named(rows: Rows, kind_columns: Sequence[str]) -> Rows:
    """The same rows, with each value of these columns in the condition: so the index bounds their time."""
    return rows.filter(**{f"{each}__in": _values(rows.model, each) for each in kind_columns})


def page(rows: Rows, kind_columns: Sequence[str], start: int, stop: int) -> Rows:
    """Rows `start` until before `stop`."""
    if not kind_columns:
        return rows[start:stop]
    return rows.filter(pk__in=[key for *_, key in keys(rows, kind_columns, start, stop)])


def keys(rows: QuerySet[Any], kind_columns: Sequence[str], start: int, stop: int) -> list[Any]:
    """What rows `start` until before `stop` are ordered by: a tuple for each."""
    order = [str(each) for each in rows.query.order_by]
    columns = [each.removeprefix("-") for each in order]
    first, *others = (
        rows.filter(**dict(zip(kind_columns, kind, strict=True))).values_list(*columns)[:stop]
        for kind in product(*(_values(rows.model, each) for each in kind_columns))
    )
    merged = first.union(*others, all=True).order_by(*order) if others else first
    return list(merged[start:stop])


def _values(model: type[Model], column: str) -> list[Any]:
    field: Field[Any, Any] = model._meta.get_field(column)  # type: ignore[assignment]
    return [value for value, _ in field.choices or ()]
