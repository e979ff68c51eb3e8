"""Encryption of stored data: check the keys of this deployment, and seal old data with the newest key.

One small encrypted row, the key check, represents all encrypted columns. The first start seals it with the
oldest key, and `manage.py reseal` renews it last. So the checks notice a key that is removed too early.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.apps import apps
from django.conf import settings
from django.db import connection, transaction
from django.db.models import Model

from core import vault
from operations.models import EncryptionKeyCheck

# Columns with this suffix contain tokens of `core.vault`, or nothing.
SEALED_SUFFIX = "_sealed"
# In this column of allauth, some values of an object are tokens.
SEALED_OBJECT = "mfa.Authenticator.data"
# Columns with this suffix contain the fingerprint by which the same text is found.
FINGERPRINT_SUFFIX = "_fingerprint"
# Rows of one transaction. It holds their locks for about 30 ms.
BATCH_SIZE = 100
MAX_LISTED = 20


@dataclass(slots=True)
class ResealCounts:
    """The number of tokens by result."""

    resealed: int = 0
    up_to_date: int = 0
    unopened: int = 0  # no key opens them
    locations: list[str] = field(default_factory=list)  # of the first 20 unopened: model, id and column


def sealed_columns() -> dict[type[Model], list[str]]:
    """The models with sealed columns, and the columns. The key check is the last."""
    found = {
        model: [
            column.name
            for column in model._meta.concrete_fields
            if column.name.endswith(SEALED_SUFFIX) or str(column) == SEALED_OBJECT
        ]
        for model in sorted(apps.get_models(), key=lambda model: model is EncryptionKeyCheck)
    }
    return {model: columns for model, columns in found.items() if columns}


def _tokens(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [each for each in value.values() if str(each).startswith(vault.PREFIX)]
    return [bytes(value) if isinstance(value, memoryview) else value] if value else []


def reseal(model: type[Model], columns: Sequence[str], *, on_progress: Callable[[int], None]) -> ResealCounts:
    """Seal again what older keys sealed. `on_progress` gets the number of rows of each batch.

    It may run twice at once. It commits every 100 rows, so it may be interrupted and run again.
    """
    counts = ResealCounts()
    every = model._base_manager.order_by("pk").values_list("pk", *columns)
    rows = list(every[:BATCH_SIZE])
    while rows:
        stale = []
        for pk, *values in rows:
            tokens = [token for value in values for token in _tokens(value)]
            if all(map(vault.is_newest, tokens)):
                counts.up_to_date += len(tokens)
            else:
                stale.append(pk)
        if stale:
            _reseal_rows(model, columns, stale, counts)
        on_progress(len(rows))
        rows = list(every.filter(pk__gt=rows[-1][0])[:BATCH_SIZE])
    return counts


@transaction.atomic
def _reseal_rows(model: type[Model], columns: Sequence[str], pks: list[Any], counts: ResealCounts) -> None:
    """Read the rows again under their locks, and seal them with the newest key."""
    with connection.cursor() as cursor:
        # `core.database.triggers.ReadOnly` lets sealed columns change, and no others.
        cursor.execute("SET LOCAL qr.resealing = 'on'")
    locked = model._base_manager.select_for_update(no_key=True).filter(pk__in=pks).order_by("pk")
    for pk, *values in locked.values_list("pk", *columns):
        fresh: dict[str, Any] = {}
        for name, value in zip(columns, values, strict=True):
            tokens = _tokens(value)
            if all(map(vault.is_newest, tokens)):
                counts.up_to_date += len(tokens)
            else:
                try:
                    fresh |= _resealed(model, name, value)
                except vault.CannotOpen:
                    counts.unopened += 1
                    if counts.unopened <= MAX_LISTED:
                        counts.locations.append(f"{model._meta.label} {pk} {name}")
        if fresh:
            model._base_manager.filter(pk=pk).update(**fresh)
            counts.resealed += len(fresh)


def _resealed(model: type[Model], name: str, value: Any) -> dict[str, Any]:
    """The new token of a column, and the new fingerprint if there is one."""
    tokens = _tokens(value)
    if isinstance(value, dict):
        return {name: {key: vault.reseal(each) if each in tokens else each for key, each in value.items()}}
    token = vault.reseal(tokens[0])
    fresh: dict[str, Any] = {name: token}
    looked_up_by = name.removesuffix(SEALED_SUFFIX) + FINGERPRINT_SUFFIX
    if any(column.name == looked_up_by for column in model._meta.concrete_fields):
        fresh[looked_up_by] = vault.fingerprint_of(token)
    return fresh


HINT = "Add the key that sealed them to FIELD_ENCRYPTION_KEYS; see 'Changing the encryption key'."
# Without a key check, as many of the oldest and of the newest rows of each table are tried.
SAMPLE_SIZE = 50


def opens_key_check() -> bool:
    """Whether the keys open the key check. True if there is none."""
    check = EncryptionKeyCheck.objects.first()
    return check is None or vault.can_open(check.text_sealed)


def find_problem() -> str | None:
    """Describe the data that the keys cannot decrypt, or return None. Without a key check, try real rows."""
    if EncryptionKeyCheck.objects.exists():
        return None if opens_key_check() else "FIELD_ENCRYPTION_KEYS do not open what is in the database."
    for model, columns in sealed_columns().items():
        every = model._base_manager.values_list(*columns)
        sample = [*every.order_by("pk")[:SAMPLE_SIZE], *every.order_by("-pk")[:SAMPLE_SIZE]]
        tokens = [token for values in sample for value in values for token in _tokens(value)]
        if tokens and not any(map(vault.can_open, tokens)):
            return f"FIELD_ENCRYPTION_KEYS do not open the rows of {model._meta.label}."
    return None


def write_key_check() -> None:
    """Write the key check if there is none. The caller has checked that `find_problem` is None."""
    context = str(EncryptionKeyCheck.ONLY)
    sealed = vault.seal("key check", context=context, keys=settings.FIELD_ENCRYPTION_KEYS[-1:])
    EncryptionKeyCheck.objects.bulk_create(
        [EncryptionKeyCheck(id=EncryptionKeyCheck.ONLY, text_sealed=sealed)], ignore_conflicts=True
    )
