"""The file with which a merchant moves: sealed chunks of JSON, one after the other.

Each chunk is a token of `core.vault` after its length, sealed for its place with a key that is made for this
file. The last chunk says that it is the last. So without the key nothing can be read, changed or cut off.
"""

from collections.abc import Iterator
from typing import Any, BinaryIO

import orjson

from core import vault

MAGIC = b"thaiqr-merchant 1\n"
LENGTH_BYTES = 4


class Unusable(Exception):
    """The merchant cannot move like that. The text says why. Nothing is changed."""


class Writer:
    def __init__(self, file: BinaryIO, key: str) -> None:
        self._file, self.key, self._number = file, key, 0
        file.write(MAGIC)

    def write(self, content: Any) -> None:
        token = vault.seal_bytes(orjson.dumps(content), context=f"chunk {self._number}", keys=[self.key])
        self._file.write(len(token).to_bytes(LENGTH_BYTES) + token)
        self._number += 1


def read(file: BinaryIO, key: str) -> Iterator[Any]:
    """The chunks. Raises Unusable."""
    if not vault.is_key(key):
        raise Unusable("The key is not one that export_merchant printed.")
    if file.read(len(MAGIC)) != MAGIC:
        raise Unusable("This is no file of export_merchant, or one of another version.")
    number = 0
    while length := file.read(LENGTH_BYTES):
        token = file.read(int.from_bytes(length))
        try:
            content = vault.open_bytes(token, context=f"chunk {number}", keys=[key])
        except vault.CannotOpen:
            first, later = "The key is not that of this file, or the file", "The file"
            raise Unusable(f"{later if number else first} is damaged.") from None
        yield orjson.loads(content)
        number += 1
