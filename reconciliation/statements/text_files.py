"""The records of a text file with separated columns. A record is what the `csv` module takes for one.

It may have several lines: a cell in quotes may hold line breaks, and what stands there is part of the cell.
"""

import codecs
import csv
import io
import re
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import BinaryIO, TextIO

from reconciliation.statements.lines import InvalidStatementFile, Record

UTF_8, UTF_16, THAI = "utf-8-sig", "utf-16", "cp874"
SEPARATORS = {"commas": ",", "semicolons": ";", "tabs": "\t"}
CHUNK_CHARACTERS = 65_536
MAX_RECORD_CHARACTERS = 65_536  # a missing quote would make one record of the rest of the file
# Bytes that are not valid become surrogates; in UTF-16 they become U+FFFD.
_VALID, _BROKEN = re.compile("[^\x00-\x7f\ud800-\udfff]"), re.compile("[\ud800-\udfff\ufffd]")


def find_encoding(stream: BinaryIO) -> str:
    """Decide about the encoding by all bytes of a file. One broken byte does not make it another one.

    Thai in CP874 is rarely valid UTF-8: each of 14 names had fewer valid characters than broken bytes.
    """
    stream.seek(0)
    start, valid, broken = stream.read(3), 0, 0
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return UTF_16
    with _decoded(stream, UTF_8) as text:
        while chunk := text.read(CHUNK_CHARACTERS):
            valid += 0 if chunk.isascii() else len(_VALID.findall(chunk))
            broken += 0 if chunk.isascii() else len(_BROKEN.findall(chunk))
    return UTF_8 if start == codecs.BOM_UTF8 or valid >= broken else THAI


def read_records(stream: BinaryIO, encoding: str, separator: str) -> Generator[Record, None, None]:
    """Raises InvalidStatementFile where it is not clear where a cell or a record ends."""
    number, end = 1, ""
    parts: list[str] = []  # the lines of the record that the `csv` module is reading

    def lines(text: TextIO) -> Iterator[str]:
        size = 0
        while line := text.readline(MAX_RECORD_CHARACTERS + 1):
            size = size + len(line) if parts else len(line)
            parts.append(line)
            if size > MAX_RECORD_CHARACTERS:
                raise InvalidStatementFile(
                    f"The record that begins in line {number} is longer than {MAX_RECORD_CHARACTERS} "
                    "characters. Is a quote missing?"
                )
            yield line

    with _decoded(stream, encoding) as text:
        try:
            for cells in csv.reader(lines(text), delimiter=separator, strict=True):
                first, raw, number = number, "".join(parts), number + len(parts)
                parts.clear()
                found = raw[len(raw.rstrip("\r\n")) :] if cells else ""
                end = end or found
                if found not in ("", end):
                    raise InvalidStatementFile(
                        f"Line {first} ends in another way than the lines above it, so a cell may hold a "
                        "line break. Give all lines the same kind of end."
                    )
                is_broken = not raw.isascii() and _BROKEN.search(raw) is not None
                name = encoding.removesuffix("-sig").upper()
                error = f"it contains bytes that are not valid {name}" if is_broken else ""
                yield Record(first, cells, raw.rstrip("\r\n").encode(errors="surrogateescape"), error)
        except csv.Error:
            raise InvalidStatementFile(
                f"Line {number} has a quote that is not closed, or not doubled inside a cell. Correct it: "
                "nobody can tell where the cell ends."
            ) from None


@contextmanager
def _decoded(stream: BinaryIO, encoding: str) -> Iterator[TextIO]:
    """Closes only the decoder."""
    stream.seek(0)
    errors = "replace" if encoding == UTF_16 else "surrogateescape"
    text = io.TextIOWrapper(stream, encoding, errors, newline="")
    try:
        yield text
    finally:
        text.detach()
