"""Digests of encrypted columns: whether a row still has the content with which it was made.

A digest is stored beside its column and never changes (`core.database.triggers`). Its key is random and is
inside the encrypted text. So sealing again with another key keeps the digest, whoever knows the keys of
encryption finds no other text with it, and after an erasure nobody can try accounts until one fits.
"""

import hmac
import os
from base64 import urlsafe_b64encode
from typing import Any, NamedTuple

from django.db import models

from core import vault

KEY_BYTES = 16


class DigestedColumn(NamedTuple):
    """An encrypted column, the column of its digest, and the columns that the digest covers too.

    usual: what its texts usually say (`core.vault.seal_bytes`).
    """

    sealed: str
    digest: str
    also: tuple[str, ...] = ()
    usual: bytes = b""


class Sealed(NamedTuple):
    token: str
    digest: str


class DigestedRow(models.Model):
    """A row of which an encrypted column has a digest."""

    DIGESTED: DigestedColumn

    class Meta:
        abstract = True

    def seal(self, text: str) -> None:
        """Set the column and its digest. The other columns that the digest covers have their values."""
        sealed = seal(text, *self._covered(), context=self._place(), usual=self.DIGESTED.usual)
        setattr(self, self.DIGESTED.sealed, sealed.token)
        setattr(self, self.DIGESTED.digest, sealed.digest)

    def has_its_content(self) -> bool:
        """Whether the content is that of the digest. Raises vault.CannotOpen."""
        stored = getattr(self, self.DIGESTED.digest)
        token, usual = getattr(self, self.DIGESTED.sealed), self.DIGESTED.usual
        key, content = vault.open_with_key(token, context=self._place(), usual=usual)
        return bool(key and stored == _digest(key, content.decode(), *self._covered()))

    def _covered(self) -> list[str]:
        return [getattr(self, name) or "" for name in self.DIGESTED.also]

    def _place(self) -> str:
        return str(getattr(self, "context", self.pk))


def seal(text: str, *also: str, context: str, usual: bytes = b"") -> Sealed:
    """Encrypt a text. The digest covers it, and the texts in `also`."""
    key = os.urandom(KEY_BYTES)
    token = vault.seal(text, context=context, digest_key=key, usual=usual)
    return Sealed(token, _digest(key, text, *also))


def digest_column() -> "models.CharField[Any, Any]":
    """Empty if there is nothing encrypted."""
    return models.CharField(max_length=64, blank=True, default="", db_default="", editable=False)


def _digest(key: bytes, *texts: str) -> str:
    encoded = [text.encode() for text in texts]
    # With their lengths, so that no other division into texts has the same digest.
    digest = hmac.digest(key, b"".join(len(each).to_bytes(4) + each for each in encoded), "sha256")
    return urlsafe_b64encode(digest).decode().rstrip("=")
