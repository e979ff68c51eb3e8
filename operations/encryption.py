"""Whether the encryption keys of this deployment open what is in its database.

A small sealed row, the key check, answers for all sealed columns. The first start writes it, sealed by the
oldest key; `manage.py reseal` renews it after everything else. So a key that is dropped too early is missed.
"""

from collections.abc import Iterator

from django.conf import settings
from django.db.models import Model

from core import crypto, vault
from operations import resealing
from operations.models import EncryptionKeyCheck

HINT = "Add the key that sealed them to FIELD_ENCRYPTION_KEYS; see 'Changing the encryption key'."
# Of a database without a key check, so many of the oldest and of the newest rows of each table are tried.
SAMPLE_SIZE = 50


def opens_key_check() -> bool:
    """Whether the keys open the key check; also True where there is none."""
    check = EncryptionKeyCheck.objects.first()
    return check is None or vault.can_open(check.text_sealed)


def find_problem() -> str | None:
    """What the keys do not open, for staff; None if nothing. Without a key check, real rows are tried."""
    if EncryptionKeyCheck.objects.exists():
        return None if opens_key_check() else "FIELD_ENCRYPTION_KEYS do not open what is in the database."
    for model, columns in resealing.tables().items():
        tokens = list(_sample_tokens(model, columns))
        if tokens and not any(map(vault.can_open, tokens)):
            return f"FIELD_ENCRYPTION_KEYS do not open the rows of {model._meta.label}."
    return None


def write_key_check() -> None:
    """Once, after `find_problem` has found none. Two processes may do so at once."""
    context = str(EncryptionKeyCheck.ONLY)
    sealed = crypto.seal("key check", context=context, keys=settings.FIELD_ENCRYPTION_KEYS[-1:])
    EncryptionKeyCheck.objects.bulk_create(
        [EncryptionKeyCheck(id=EncryptionKeyCheck.ONLY, text_sealed=sealed)], ignore_conflicts=True
    )


def _sample_tokens(model: type[Model], columns: list[str]) -> Iterator[str]:
    rows = model._base_manager.values_list(*columns)
    for values in [*rows.order_by("pk")[:SAMPLE_SIZE], *rows.order_by("-pk")[:SAMPLE_SIZE]]:
        yield from (vault.as_text(value) for value in values if value)
