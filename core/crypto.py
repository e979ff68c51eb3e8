"""Secrets at rest: text sealed with Fernet (AES-128-CBC and HMAC-SHA256) and tied to its place."""

import hmac
import json
from collections.abc import Sequence
from functools import lru_cache

from cryptography.fernet import Fernet, InvalidToken, MultiFernet


class CannotOpen(ValueError):
    """The token was altered, was sealed with other keys, or belongs to another place."""


def seal(text: str, *, context: str, keys: Sequence[str]) -> str:
    """Encrypt with the first key. `context` names the place, such as the row's id."""
    plaintext = json.dumps([context, text]).encode()
    return _fernet(tuple(keys)).encrypt(plaintext).decode()


def open_sealed(token: str, *, context: str, keys: Sequence[str]) -> str:
    """Decrypt with whichever key fits. Raises CannotOpen."""
    sealed_for, text = _open(token, keys)
    # Fernet binds no context: without this a stolen row could be read by copying it into another.
    if sealed_for != context:
        raise CannotOpen("This token was sealed for another place.")
    return text


def text_of(token: str, *, keys: Sequence[str]) -> str:
    """What was sealed, for whatever place. Raises CannotOpen."""
    return _open(token, keys)[1]


def fingerprint(text: str, *, key: str) -> str:
    """Tells whether two sealed texts are the same; without the key it tells nothing."""
    return hmac.digest(key.encode(), b"fingerprint " + text.encode(), "sha256").hex()


def rotate(token: str, keys: Sequence[str]) -> str:
    """Encrypt anew with the first key; text and context stay. Raises CannotOpen."""
    try:
        return _fernet(tuple(keys)).rotate(token.encode()).decode()
    except InvalidToken:
        raise CannotOpen("No key opens this token.") from None


def is_newest(token: str, keys: Sequence[str]) -> bool:
    """Whether the first key opens it, so that the others are not needed for it."""
    return can_open(token, keys[:1])


def can_open(token: str, keys: Sequence[str]) -> bool:
    """Whether any key opens it, wherever it belongs."""
    try:
        _fernet(tuple(keys)).decrypt(token.encode())
    except InvalidToken:
        return False
    return True


def _open(token: str, keys: Sequence[str]) -> tuple[str, str]:
    try:
        sealed_for, text = json.loads(_fernet(tuple(keys)).decrypt(token.encode()))
    except InvalidToken:
        raise CannotOpen("No key opens this token.") from None
    return str(sealed_for), str(text)


@lru_cache(maxsize=8)
def _fernet(keys: tuple[str, ...]) -> MultiFernet:
    return MultiFernet([Fernet(key) for key in keys])
