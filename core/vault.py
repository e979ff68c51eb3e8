"""Secrets and account numbers at rest: text and bytes sealed with AES-256-GCM (NIST SP 800-38D).

What is sealed belongs to one place, its `context`, and a digest of that is sealed with it. `keys` are the
deployment's FIELD_ENCRYPTION_KEYS, newest first, unless given.

A token is `sealed:`, 20 bytes of salt, 12 of nonce, and the ciphertext with tag. In a token for a column of
text all but `sealed:` is URL-safe base64. The key of a token is the HMAC-SHA256 of its salt: GCM allows
2**32 random nonces with one key. A process takes a new salt every minute; a salt for each token would cost
five times as much.

`core.digests` puts a random key into a token, beside the text, for a digest of the text.
"""

import base64
import hashlib
import hmac
import os
import time
import zlib
from collections.abc import Sequence
from functools import lru_cache
from typing import TypeVar

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from django.conf import settings

from core import deflate

PREFIX, PREFIX_BYTES = "sealed:", b"sealed:"
KEY_BYTES, SALT_BYTES, NONCE_BYTES = 32, 20, 12
SALT_SECONDS = 60
PLACE_BYTES = 16
HEADER_BYTES = PLACE_BYTES + 2  # the place, the length of the key of the digest, and whether it is compressed
LONG_BYTES = 200  # shorter content is not compressed
Keys = Sequence[str] | None
Token = TypeVar("Token", str, bytes)


class CannotOpen(ValueError):
    """The token was altered, was sealed with other keys, or belongs to another place."""


def new_key() -> str:
    """A random key for FIELD_ENCRYPTION_KEYS."""
    return base64.urlsafe_b64encode(os.urandom(KEY_BYTES)).decode()


def is_key(text: str) -> bool:
    """Whether `text` is 32 bytes in URL-safe base64."""
    try:
        return len(base64.b64decode(text.encode("ascii"), b"-_", validate=True)) == KEY_BYTES
    except ValueError:
        return False


def seal(text: str, *, context: str, keys: Keys = None, digest_key: bytes = b"", usual: bytes = b"") -> str:
    """Encrypt with the newest key. `context` names the place, such as the row's id."""
    return _token(PREFIX, _encrypt(_pack(text.encode(), context, digest_key, usual), _raw_keys(keys)[0]))


def seal_bytes(content: bytes, *, context: str, keys: Keys = None, usual: bytes = b"") -> bytes:
    """The same for bytes, as a token for a column of bytes. Words that are in `usual` take less space."""
    return _token(PREFIX_BYTES, _encrypt(_pack(content, context, b"", usual), _raw_keys(keys)[0]))


def open_sealed(token: str | bytes, *, context: str, keys: Keys = None, usual: bytes = b"") -> str:
    """Decrypt with any key. Raises CannotOpen."""
    return open_bytes(token, context=context, keys=keys, usual=usual).decode()


def open_bytes(token: str | bytes, *, context: str, keys: Keys = None, usual: bytes = b"") -> bytes:
    """The same as bytes. `usual` must be that with which it was sealed. Raises CannotOpen."""
    return open_with_key(token, context=context, keys=keys, usual=usual)[1]


def open_with_key(
    token: str | bytes, *, context: str, keys: Keys = None, usual: bytes = b""
) -> tuple[bytes, bytes]:
    """The key of the digest, empty if the token has none, and the content. Raises CannotOpen."""
    sealed_for, digest_key, content = _unpack(_decrypt(token, _raw_keys(keys)), usual)
    # Without this check a row could be read by copying its token to another row.
    if sealed_for != _place(context):
        raise CannotOpen("This token was sealed for another place.")
    return digest_key, content


def reseal(token: Token, *, keys: Keys = None) -> Token:
    """Encrypt the same content for the same place with the newest key. Raises CannotOpen."""
    raw_keys = _raw_keys(keys)
    return _token(token, _encrypt(_decrypt(token, raw_keys), raw_keys[0]))


def fingerprints(text: str) -> list[str]:
    """Keyed hashes to look up a sealed text: one for each key, newest first. Only the first is stored."""
    return [_fingerprint(text, key) for key in settings.FIELD_ENCRYPTION_KEYS]


def fingerprint_of(token: str) -> str:
    """The newest fingerprint of a sealed text, for any place. Raises CannotOpen."""
    _, _, text = _unpack(_decrypt(token, _raw_keys(None)))
    return _fingerprint(text.decode(), settings.FIELD_ENCRYPTION_KEYS[0])


def can_open(token: str | bytes, *, keys: Keys = None) -> bool:
    """Whether any key opens it, for any place."""
    try:
        _decrypt(token, _raw_keys(keys))
    except CannotOpen:
        return False
    return True


def is_newest(token: str | bytes, *, keys: Keys = None) -> bool:
    """Whether the newest key can decrypt the token, so that older keys are not needed."""
    return can_open(token, keys=(keys or settings.FIELD_ENCRYPTION_KEYS)[:1])


def masked(account: str | None) -> str | None:
    """An account number with only its last four characters readable."""
    return None if account is None else "x" * max(0, len(account) - 4) + account[-4:]


def to_bytes(token: str) -> bytes:
    """The token as for a column of bytes, where it takes a quarter less. Other texts are only encoded."""
    try:
        rest = base64.b64decode(token.removeprefix(PREFIX), b"-_", validate=True)
    except ValueError:
        return token.encode()
    return PREFIX_BYTES + rest if token.startswith(PREFIX) else token.encode()


def to_text(stored: bytes) -> str:
    """What `to_bytes` made bytes of."""
    rest = stored.removeprefix(PREFIX_BYTES)
    return _token(PREFIX, rest) if rest != stored else stored.decode(errors="replace")


def _pack(content: bytes, context: str, digest_key: bytes, usual: bytes = b"") -> bytes:
    is_long = len(content) >= LONG_BYTES
    content = deflate.pack(content, usual) if is_long else content
    return _place(context) + bytes([len(digest_key), is_long]) + digest_key + content


def _unpack(packed: bytes, usual: bytes = b"") -> tuple[bytes, bytes, bytes]:
    """The place, the key of the digest, and the content. Raises CannotOpen for other words."""
    key_length, is_long = packed[PLACE_BYTES:HEADER_BYTES]
    end = HEADER_BYTES + key_length
    try:
        content = deflate.unpack(packed[end:], usual) if is_long else packed[end:]
    except zlib.error:
        raise CannotOpen("This token was sealed with other usual words.") from None
    return packed[:PLACE_BYTES], packed[HEADER_BYTES:end], content


def _place(context: str) -> bytes:
    """The digest of a context, which is often longer."""
    return hashlib.sha256(context.encode()).digest()[:PLACE_BYTES]


def _encrypt(packed: bytes, key: bytes) -> bytes:
    """Salt, nonce, and the ciphertext with tag."""
    salt, nonce = _salt(os.getpid(), int(time.monotonic() // SALT_SECONDS)), os.urandom(NONCE_BYTES)
    return salt + nonce + _cipher(key, salt).encrypt(nonce, packed, None)


def _token(like: Token, raw: bytes) -> Token:
    """A token of the same type as another."""
    if isinstance(like, str):
        return PREFIX + base64.urlsafe_b64encode(raw).decode()
    return PREFIX_BYTES + raw


def _decrypt(token: str | bytes, keys: Sequence[bytes]) -> bytes:
    prefix, rest = token[: len(PREFIX)], token[len(PREFIX) :]
    if prefix not in (PREFIX, PREFIX_BYTES):
        raise CannotOpen("This is not a token.")
    try:
        raw = rest if isinstance(rest, bytes) else base64.b64decode(rest, b"-_", validate=True)
    except ValueError:
        raise CannotOpen("This is not a token.") from None
    start = SALT_BYTES + NONCE_BYTES
    for key in keys:
        try:
            return _cipher(key, raw[:SALT_BYTES]).decrypt(raw[SALT_BYTES:start], raw[start:], None)
        except (InvalidTag, ValueError):  # another key, or a token that is cut off
            continue
    raise CannotOpen("No key opens this token.")


@lru_cache(maxsize=1)
def _salt(process: int, period: int) -> bytes:
    return os.urandom(SALT_BYTES)


@lru_cache(maxsize=256)
def _cipher(key: bytes, salt: bytes) -> AESGCM:
    return AESGCM(hmac.digest(key, salt, "sha256"))


def _fingerprint(text: str, key: str) -> str:
    return hmac.digest(key.encode(), b"fingerprint " + text.encode(), "sha256").hex()


def _raw_keys(keys: Keys) -> tuple[bytes, ...]:
    """Raises ValueError if there is no key."""
    return _decoded(tuple(settings.FIELD_ENCRYPTION_KEYS if keys is None else keys))


@lru_cache(maxsize=8)
def _decoded(keys: tuple[str, ...]) -> tuple[bytes, ...]:
    if not keys:
        raise ValueError("Sealing needs at least one key.")
    return tuple(base64.urlsafe_b64decode(key) for key in keys)
