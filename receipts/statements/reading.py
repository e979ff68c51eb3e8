"""A statement file of whatever format: which one it is, and its lines. Never held as a whole."""

import codecs
import hashlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, Literal, get_args

from receipts.statements import bot, plain
from receipts.statements.lines import Complaints, NotAStatement, Row, numbered

Format = Literal["bot", "csv"]
FORMATS: tuple[Format, ...] = get_args(Format)
CHUNK = 65_536
# Bits by which lines that may come twice are told from those that surely do not: 1 MB whatever the file.
BITS = 1 << 23


@dataclass(frozen=True, slots=True)
class File:
    """A file that can be read from its start as often as needed. digest: SHA-256 in hex; size: in bytes.

    bank_code: three digits of the bank that wrote it, or empty where it does not say.
    """

    stream: BinaryIO
    name: str
    format: Format
    encoding: str
    digest: str
    size: int
    bank_code: str

    def rows(self, complaints: Complaints) -> Iterator[Row]:
        """Its lines; what is wrong with it as a whole is known after the last. Raises NotAStatement."""
        self.stream.seek(0)
        lines = numbered(self.stream)
        return bot.rows(lines, complaints) if self.format == "bot" else plain.rows(lines, self.encoding)


class Occurrences:
    """Which time it is that the same line comes in a file, for files of any length.

    Few lines come twice: a first look finds those that may, and only they are counted.
    """

    def __init__(self) -> None:
        self._seen = bytearray(BITS // 8)
        self._may_repeat: set[int] = set()
        self._counted: Counter[str] = Counter()

    def look(self, digest: str) -> None:
        place, mask = divmod(_bit(digest), 8)
        if self._seen[place] & 1 << mask:
            self._may_repeat.add(_bit(digest))
        self._seen[place] |= 1 << mask

    def count(self, digest: str) -> int:
        """1 for the first time. Every line of the file has been looked at before."""
        if _bit(digest) not in self._may_repeat:
            return 1
        self._counted[digest] += 1
        return self._counted[digest]


def open_file(stream: BinaryIO, name: str, form: Format | None = None) -> File:
    """Find out what it is, where `form` does not say. Raises NotAStatement."""
    sha, size, is_utf8 = hashlib.sha256(), 0, True
    decoder = codecs.getincrementaldecoder("utf-8")()
    stream.seek(0)
    while chunk := stream.read(CHUNK):
        sha.update(chunk)
        size += len(chunk)
        is_utf8 = is_utf8 and _decodes(decoder, chunk)
    is_utf8 = is_utf8 and _decodes(decoder, b"", final=True)
    encoding = "utf-8" if is_utf8 or _has_mark(stream) else bot.ENCODING
    stream.seek(0)
    _, first = next(numbered(stream), (0, b""))
    if not first:
        raise NotAStatement("The file is empty.")
    form = form or _format_of(first)
    bank_code = bot.bank_code_of(first) if form == "bot" else ""
    return File(stream, name, form, encoding, sha.hexdigest(), size, bank_code)


def as_text(line: bytes) -> str:
    """A line for people, whatever it is made of."""
    try:
        return line.decode()
    except UnicodeDecodeError:
        return line.decode(bot.ENCODING, "backslashreplace")


def _decodes(decoder: codecs.IncrementalDecoder, chunk: bytes, *, final: bool = False) -> bool:
    try:
        decoder.decode(chunk, final)
    except UnicodeDecodeError:
        return False
    return True


def _has_mark(stream: BinaryIO) -> bool:
    stream.seek(0)
    return stream.read(3) == codecs.BOM_UTF8


def _format_of(first: bytes) -> Format:
    if bot.BEGINNING.match(first):
        return "bot"
    if b"biller_id" in first.lower():
        return "csv"
    raise NotAStatement(
        "It is neither a cross-bank bill payment file nor a CSV file in UTF-8 that begins with the names of "
        "its columns."
    )


def _bit(digest: str) -> int:
    return int(digest[:8], 16) % BITS
