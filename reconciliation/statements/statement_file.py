"""A statement file of any format: detects the format and reads the lines, never the whole file at once."""

import codecs
import hashlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, Literal, get_args

from reconciliation.statements import bot_format, csv_format
from reconciliation.statements.lines import FileLine, FileProblems, InvalidStatementFile, numbered_lines

StatementFormat = Literal["bot", "csv"]
FORMATS: tuple[StatementFormat, ...] = get_args(StatementFormat)
CHUNK_BYTES = 65_536
# Bits of a Bloom filter for repeated lines: 1 MB for a file of any length.
FILTER_BITS = 1 << 23


@dataclass(frozen=True, slots=True)
class StatementFile:
    """A file that can be read several times. size: in bytes.

    bank_code: three digits of the bank that wrote it, or empty if the file does not name it.
    """

    stream: BinaryIO
    name: str
    format: StatementFormat
    encoding: str
    sha256: str
    size: int
    bank_code: str

    def read_lines(self, problems: FileProblems) -> Iterator[FileLine]:
        """The lines; `problems` is complete after the last one. Raises InvalidStatementFile."""
        self.stream.seek(0)
        lines = numbered_lines(self.stream)
        return (
            bot_format.read_lines(lines, problems)
            if self.format == "bot"
            else csv_format.read_lines(lines, self.encoding)
        )


class OccurrenceCounter:
    """Counts how often the same line occurs in a file, with bounded memory.

    Few lines repeat. The first pass finds lines that may repeat, and the second pass counts only these.
    """

    def __init__(self) -> None:
        self._seen = bytearray(FILTER_BITS // 8)
        self._may_repeat: set[int] = set()
        self._counted: Counter[str] = Counter()

    def scan(self, sha256: str) -> None:
        place, mask = divmod(_filter_bit(sha256), 8)
        if self._seen[place] & 1 << mask:
            self._may_repeat.add(_filter_bit(sha256))
        self._seen[place] |= 1 << mask

    def count(self, sha256: str) -> int:
        """1 for the first occurrence. `scan` has seen every line of the file before."""
        if _filter_bit(sha256) not in self._may_repeat:
            return 1
        self._counted[sha256] += 1
        return self._counted[sha256]


def open_file(stream: BinaryIO, name: str, form: StatementFormat | None = None) -> StatementFile:
    """Detect the format unless `form` is given. Raises InvalidStatementFile."""
    hasher, size, is_utf8 = hashlib.sha256(), 0, True
    decoder = codecs.getincrementaldecoder("utf-8")()
    stream.seek(0)
    while chunk := stream.read(CHUNK_BYTES):
        hasher.update(chunk)
        size += len(chunk)
        is_utf8 = is_utf8 and _decodes(decoder, chunk)
    is_utf8 = is_utf8 and _decodes(decoder, b"", final=True)
    encoding = "utf-8" if is_utf8 or _has_byte_order_mark(stream) else bot_format.ENCODING
    stream.seek(0)
    _, first = next(numbered_lines(stream), (0, b""))
    if not first:
        raise InvalidStatementFile("The file is empty.")
    form = form or _format_of(first)
    bank_code = bot_format.bank_code_of(first) if form == "bot" else ""
    return StatementFile(stream, name, form, encoding, hasher.hexdigest(), size, bank_code)


def decode_line(line: bytes) -> str:
    """Return a line as text for display. The line may have any bytes."""
    try:
        return line.decode()
    except UnicodeDecodeError:
        return line.decode(bot_format.ENCODING, "backslashreplace")


def _decodes(decoder: codecs.IncrementalDecoder, chunk: bytes, *, final: bool = False) -> bool:
    try:
        decoder.decode(chunk, final)
    except UnicodeDecodeError:
        return False
    return True


def _has_byte_order_mark(stream: BinaryIO) -> bool:
    stream.seek(0)
    return stream.read(3) == codecs.BOM_UTF8


def _format_of(first: bytes) -> StatementFormat:
    if bot_format.LINE_START.match(first):
        return "bot"
    if b"biller_id" in first.lower():
        return "csv"
    raise InvalidStatementFile(
        "It is neither a cross-bank bill payment file nor a CSV file in UTF-8 with a header line."
    )


def _filter_bit(sha256: str) -> int:
    return int(sha256[:8], 16) % FILTER_BITS
