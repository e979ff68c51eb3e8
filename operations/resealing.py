"""Everything that is sealed in the database, sealed with the newest key."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.apps import apps
from django.db import connection, transaction
from django.db.models import Model

from core import crypto, vault
from operations.models import EncryptionKeyCheck

# A column with such a name holds tokens of `core.vault`, or nothing.
SEALED_SUFFIX = "_sealed"
# The same text is looked up by a column with such a name.
FINGERPRINT_SUFFIX = "_fingerprint"
# Rows of one transaction: some 30 ms in which whoever else changes one of them waits.
BATCH_SIZE = 100
MAX_LISTED = 20


@dataclass(slots=True)
class ResealCounts:
    """Tokens by what became of them."""

    resealed: int = 0
    up_to_date: int = 0
    unopened: int = 0  # no key opens them
    locations: list[str] = field(default_factory=list)  # the first of the lost: model, id and column

    def add_unopened(self, location: str) -> None:
        self.unopened += 1
        if len(self.locations) < MAX_LISTED:
            self.locations.append(location)

    def __add__(self, other: "ResealCounts") -> "ResealCounts":
        named = [*self.locations, *other.locations][:MAX_LISTED]
        return ResealCounts(
            self.resealed + other.resealed,
            self.up_to_date + other.up_to_date,
            self.unopened + other.unopened,
            named,
        )


def tables() -> dict[type[Model], list[str]]:
    """Every model that has sealed columns, and their names. The key check comes last: it answers for all."""
    found = {
        model: [column.name for column in model._meta.concrete_fields if column.name.endswith(SEALED_SUFFIX)]
        for model in sorted(apps.get_models(), key=lambda model: model is EncryptionKeyCheck)
    }
    return {model: columns for model, columns in found.items() if columns}


def reseal(model: type[Model], columns: Sequence[str], *, on_progress: Callable[[int], None]) -> ResealCounts:
    """Seal what older keys sealed; `on_progress` is told how many rows were looked at. May run twice at once.

    Each commit is a hundred rows: an interruption loses nothing that is done, and the next run goes on.
    """
    counts = ResealCounts()
    for rows in _batches(model, columns):
        stale = []
        for pk, *values in rows:
            tokens = [vault.as_text(value) for value in values if value]
            if all(map(vault.is_newest, tokens)):
                counts.up_to_date += len(tokens)
            else:
                stale.append(pk)
        if stale:
            _reseal_rows(model, columns, stale, counts)
        on_progress(len(rows))
    return counts


def _batches(model: type[Model], columns: Sequence[str]) -> Iterator[list[tuple[Any, ...]]]:
    """All rows in the order of their keys, a batch at a time and without a lock."""
    every = model._base_manager.order_by("pk").values_list("pk", *columns)
    rows = list(every[:BATCH_SIZE])
    while rows:
        yield rows
        rows = list(every.filter(pk__gt=rows[-1][0])[:BATCH_SIZE])


@transaction.atomic
def _reseal_rows(
    model: type[Model], columns: Sequence[str], pks: Sequence[Any], counts: ResealCounts
) -> None:
    """Judge the rows again under their locks: what somebody has changed meanwhile is not overwritten."""
    with connection.cursor() as cursor:
        # `core.triggers.ReadOnly` lets sealed columns change, and no others.
        cursor.execute("SET LOCAL qr.resealing = 'on'")
    locked = model._base_manager.select_for_update(no_key=True).filter(pk__in=pks).order_by("pk")
    for pk, *values in locked.values_list("pk", *columns):
        fresh: dict[str, str | bytes] = {}
        for name, value in zip(columns, values, strict=True):
            if value and vault.is_newest(vault.as_text(value)):
                counts.up_to_date += 1
            elif value:
                try:
                    fresh |= _resealed(model, name, value)
                except crypto.CannotOpen:
                    counts.add_unopened(f"{model._meta.label} {pk} {name}")
        if fresh:
            model._base_manager.filter(pk=pk).update(**fresh)
            counts.resealed += len(fresh)


def _resealed(model: type[Model], name: str, value: Any) -> dict[str, str | bytes]:
    """With the fingerprint beside it, which is made with the same key."""
    token = vault.reseal(vault.as_text(value))
    fresh: dict[str, str | bytes] = {name: token if isinstance(value, str) else token.encode()}
    looked_up_by = name.removesuffix(SEALED_SUFFIX) + FINGERPRINT_SUFFIX
    if any(column.name == looked_up_by for column in model._meta.concrete_fields):
        fresh[looked_up_by] = vault.fingerprint_of(token)
    return fresh
