"""Secrets and account numbers at rest: text sealed with Fernet (AES-128-CBC and HMAC-SHA256).

A sealed text belongs to one place, its `context`. `keys` are the deployment's FIELD_ENCRYPTION_KEYS, newest
first, unless given.
"""

import hmac
import json
from collections.abc import Sequence
from functools import lru_cache

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings

Keys = Sequence[str] | None


class CannotOpen(ValueError):
    """The token was altered, was sealed with other keys, or belongs to another place."""


def seal(text: str, *, context: str, keys: Keys = None) -> str:
    """Encrypt with the newest key. `context` names the place, such as the row's id."""
    return _fernet(keys).encrypt(json.dumps([context, text]).encode()).decode()


def open_sealed(token: str, *, context: str, keys: Keys = None) -> str:
    """Decrypt with any key. Raises CannotOpen."""
    sealed_for, text = _open(token, keys)
    # Fernet has no context: without this check a row could be read by copying its token to another row.
    if sealed_for != context:
        raise CannotOpen("This token was sealed for another place.")
    return text


def reseal(token: str, *, keys: Keys = None) -> str:
    """Encrypt the same text for the same place with the newest key. Raises CannotOpen."""
    try:
        return _fernet(keys).rotate(token.encode()).decode()
    except InvalidToken:
        raise CannotOpen("No key opens this token.") from None


def fingerprints(text: str) -> list[str]:
    """Keyed hashes to look up a sealed text: one for each key, newest first. Only the first is stored."""
    return [_fingerprint(text, key) for key in settings.FIELD_ENCRYPTION_KEYS]


def fingerprint_of(token: str) -> str:
    """The newest fingerprint of a sealed text, for any place. Raises CannotOpen."""
    return _fingerprint(_open(token, None)[1], settings.FIELD_ENCRYPTION_KEYS[0])


def can_open(token: str, *, keys: Keys = None) -> bool:
    """Whether any key opens it, for any place."""
    try:
        _fernet(keys).decrypt(token.encode())
    except InvalidToken:
        return False
    return True


def is_newest(token: str, *, keys: Keys = None) -> bool:
    """Whether the newest key can decrypt the token, so that older keys are not needed."""
    return can_open(token, keys=(keys or settings.FIELD_ENCRYPTION_KEYS)[:1])


def as_text(value: str | bytes | memoryview) -> str:
    """A token as text. Any bytes are accepted; opening a broken token fails."""
    return value if isinstance(value, str) else bytes(value).decode("latin-1")


def masked(account: str | None) -> str | None:
    """An account number with only its last four characters readable."""
    return None if account is None else "x" * max(0, len(account) - 4) + account[-4:]


def _open(token: str, keys: Keys) -> tuple[str, str]:
    try:
        sealed_for, text = json.loads(_fernet(keys).decrypt(token.encode()))
    except InvalidToken:
        raise CannotOpen("No key opens this token.") from None
    return str(sealed_for), str(text)


def _fingerprint(text: str, key: str) -> str:
    return hmac.digest(key.encode(), b"fingerprint " + text.encode(), "sha256").hex()


def _fernet(keys: Keys) -> MultiFernet:
    return _fernet_of(tuple(settings.FIELD_ENCRYPTION_KEYS if keys is None else keys))


@lru_cache(maxsize=8)
def _fernet_of(keys: tuple[str, ...]) -> MultiFernet:
    return MultiFernet([Fernet(key) for key in keys])
