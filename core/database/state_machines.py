"""State machines: a model's table of transitions, enforced here and by `triggers.Transitions`."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar, TypeVar

from django.db import models

from core.database import rows
from core.database.columns import KeyedRow

Row = TypeVar("Row", bound=models.Model)


class LockableRows(models.QuerySet[Row]):
    def locked(self, key: str) -> Row:
        """The row, under its lock. The caller has the locks that come before it (`tests/lock_order.py`)."""
        return self.select_for_update(no_key=True).get(pk=key)


class IllegalTransition(Exception):
    """The table of transitions does not allow this change. The text has the object's id and both states."""


class StateMachine(KeyedRow):
    """A model whose state changes only as TRANSITIONS allows: it maps each state to its next states.

    Only this module assigns the state of a stored row.
    """

    TRANSITIONS: ClassVar[Mapping[Any, Collection[Any]]]
    STATE_FIELD: ClassVar[str] = "status"

    class Meta:
        abstract = True

    def transition(self, target: models.TextChoices, **fields: Any) -> None:
        """Change the state and `fields`, or raise IllegalTransition. The caller holds the row lock."""
        self.set_fields(**_changes(self, target), **fields)

    def set_fields(self, **fields: Any) -> None:
        """Change and save these columns and no other. The caller holds the row lock."""
        for name, value in fields.items():
            setattr(self, name, value)
        self.save(update_fields=list(fields))


M = TypeVar("M", bound=StateMachine)


def transition_all(changes: Sequence[tuple[M, Mapping[str, Any]]], target: models.TextChoices) -> None:
    """`transition` of each object with its fields, all the same, by one statement. They are locked."""
    for instance, fields in changes:
        for name, value in {**_changes(instance, target), **fields}.items():
            setattr(instance, name, value)
    if changes:
        instance, fields = changes[0]
        rows.update_rows([instance for instance, _ in changes], [instance.STATE_FIELD, *fields])


def transition_where(
    queryset: "models.QuerySet[M]", source: models.TextChoices, target: models.TextChoices, **fields: Any
) -> int:
    """Change those rows of `queryset` that are in `source`, by one statement; return how many these were."""
    model = queryset.model
    if target not in model.TRANSITIONS.get(source, ()):
        raise IllegalTransition(f"{model.__name__}: '{source}' to '{target}'")
    state = model.STATE_FIELD
    return queryset.filter(**{state: source}).update(**{state: target}, **fields)


def _changes(instance: StateMachine, target: models.TextChoices) -> dict[str, Any]:
    """The state field with its new value. Raises IllegalTransition."""
    source = getattr(instance, instance.STATE_FIELD)
    if target not in instance.TRANSITIONS.get(source, ()):
        raise IllegalTransition(f"{instance.pk}: '{source}' to '{target}'")
    return {instance.STATE_FIELD: target}
