"""Column types and CHECKs that several apps share."""

from typing import Any

import orjson
from django.db import models
from django.db.models import Q, Transform, Value

from core import ids, vault


class PublicId(models.CharField[Any, Any]):
    """A primary key that merchants see, such as `pay_...`; compared and sorted byte by byte."""

    def __init__(self, **kwargs: Any) -> None:
        kwargs.setdefault("max_length", ids.MAX_LENGTH)
        kwargs.setdefault("db_collation", "C")
        super().__init__(**kwargs)

    def db_type(self, connection: Any) -> str:
        # With `varchar` Django would add a second index for LIKE, which no query uses.
        return f"character varying({self.max_length})"


class PublicIdKey(PublicId):
    def __init__(self, **kwargs: Any) -> None:
        kwargs["primary_key"] = True
        super().__init__(**kwargs)


@models.CharField.register_lookup
class Folded(Transform):
    """A text in small letters, in the order of its bytes: an index of it finds texts by their beginning."""

    lookup_name = "folded"
    template = '(LOWER(%(expressions)s) COLLATE "C")'


def same(field: str, text: str) -> Q:
    """Rows with this text, in any case."""
    return Q(**{f"{field}__folded": Folded(Value(text))})


def begins(field: str, text: str) -> Q:
    """Rows whose text begins so, in any case. U+10FFFF is behind every other character."""
    low, high = (Folded(Value(end)) for end in (text, f"{text}\U0010ffff"))
    return Q(**{f"{field}__folded__gte": low, f"{field}__folded__lt": high})


def check(name: str, condition: Q) -> models.CheckConstraint:
    """A CHECK of each row."""
    return models.CheckConstraint(condition=condition, name=name)


def known(field: str, choices: type[models.TextChoices], *, name: str) -> models.CheckConstraint:
    """A CHECK that a column has one of these values."""
    return check(name, Q(**{f"{field}__in": choices.values}))


class KeyedRow(models.Model):
    """A row that is named by its key. Nobody gets permissions for it, unless its own Meta says so."""

    class Meta:
        abstract = True
        default_permissions = ()

    def __str__(self) -> str:
        return str(self.pk)


class CausedRow(KeyedRow):
    """A row that records who caused it. `request_context.columns()` has the values."""

    # The actor, as in core.request_context.
    actor = models.CharField(max_length=160, blank=True, default="", db_default="")
    request_id = models.CharField(max_length=64, blank=True, default="", db_default="")

    class Meta:
        abstract = True


class RawJson(models.Field[Any, Any]):
    """JSON stored as received, in PostgreSQL's `json`: `jsonb` sorts keys and rewrites numbers."""

    def db_type(self, connection: Any) -> str:
        return "json"

    def get_prep_value(self, value: Any) -> str | None:
        return None if value is None else orjson.dumps(value).decode()

    def from_db_value(self, value: Any, expression: Any, connection: Any) -> Any:
        return orjson.loads(value) if isinstance(value, str | bytes) else value

    def value_to_string(self, obj: models.Model) -> str:
        return str(self.get_prep_value(self.value_from_object(obj)))


class SealedText(models.Field[Any, Any]):
    """A text that `core.vault` sealed, stored as bytes: its base64 would take a third more."""

    def db_type(self, connection: Any) -> str:
        return "bytea"

    def get_prep_value(self, value: Any) -> bytes | None:
        return None if value is None else vault.to_bytes(value)

    def from_db_value(self, value: Any, expression: Any, connection: Any) -> str | None:
        return None if value is None else vault.to_text(bytes(value))
