"""Secrets and account numbers at rest, sealed with the deployment's keys (`core.crypto`)."""

from django.conf import settings

from core import crypto


def seal(text: str, *, context: str) -> str:
    """`text` encrypted for the row named `context`."""
    return crypto.seal(text, context=context, keys=settings.FIELD_ENCRYPTION_KEYS)


def open_sealed(token: str, *, context: str) -> str:
    """The text sealed for the row named `context`. Raises `crypto.CannotOpen`."""
    return crypto.open_sealed(token, context=context, keys=settings.FIELD_ENCRYPTION_KEYS)


def reseal(token: str) -> str:
    """The same text for the same row, sealed with the newest key. Raises `crypto.CannotOpen`."""
    return crypto.rotate(token, settings.FIELD_ENCRYPTION_KEYS)


def fingerprints(text: str) -> list[str]:
    """By which a sealed text is looked up: one for each key, the newest first. Only the first is stored."""
    return [crypto.fingerprint(text, key=key) for key in settings.FIELD_ENCRYPTION_KEYS]


def fingerprint_of(token: str) -> str:
    """The newest fingerprint of a sealed text, whatever it was sealed for. Raises `crypto.CannotOpen`."""
    keys = settings.FIELD_ENCRYPTION_KEYS
    return crypto.fingerprint(crypto.text_of(token, keys=keys), key=keys[0])


def can_open(token: str) -> bool:
    """Whether any key opens it."""
    return crypto.can_open(token, settings.FIELD_ENCRYPTION_KEYS)


def is_newest(token: str) -> bool:
    """Whether the newest key opens it."""
    return crypto.is_newest(token, settings.FIELD_ENCRYPTION_KEYS)


def as_text(value: str | bytes | memoryview) -> str:
    """A token as text; any bytes will do here, a broken one is found when it is opened."""
    return value if isinstance(value, str) else bytes(value).decode("latin-1")


def masked(account: str | None) -> str | None:
    """An account number for the eyes of others: its last four characters."""
    return None if account is None else "x" * max(0, len(account) - 4) + account[-4:]
