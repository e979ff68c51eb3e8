"""Which rows of a merchant move to another instance: `tables.toml`."""

import tomllib
from pathlib import Path
from typing import Any

from django.apps import apps
from django.db.models import BigIntegerField, Model

_LISTS = tomllib.loads((Path(__file__).parent / "tables.toml").read_text())
MOVES: dict[str, list[str]] = _LISTS["moves"]
NAMED: dict[str, list[str]] = _LISTS["named"]
LEFT_OUT: dict[str, dict[str, str]] = _LISTS["left_out"]
STAYS: dict[str, list[str]] = _LISTS["stays"]


def models() -> list[type[Model]]:
    return [apps.get_model(label) for label in MOVES]


def columns(model: type[Model]) -> list[Any]:
    """The columns of a row, without those that the database generates."""
    return [field for field in model._meta.concrete_fields if not field.generated]


def numbered_by(field: Any) -> type[Model] | None:
    """The model whose numbers are in this column. Each database has its own, so the import renumbers them."""
    target = field.target_field if field.is_relation else field
    return target.model if isinstance(target, BigIntegerField) and target.column == "id" else None


def schema() -> dict[str, list[str]]:
    """The columns of all tables that move: both instances must have the same."""
    return {model._meta.label_lower: [field.column for field in columns(model)] for model in models()}
