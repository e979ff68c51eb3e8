"""The records of an Excel file. A program of its own with limits unpacks it: see `decode_xlsx`."""

import json
import shutil
import tempfile
from collections.abc import Iterator
from functools import partial
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import BinaryIO

from core.work import decoders
from core.work.decoders import DecoderFailed
from reconciliation.statements.lines import InvalidStatementFile, ReaderBusy, Record
from reconciliation.statements.table_format import Records

START = b"PK\x03\x04"
OLD_START = b"\xd0\xcf\x11\xe0"
DECODER = Path(__file__).with_name("decode_xlsx.py")
MAX_BYTES = 64 * 1024 * 1024
SAVE_AS_CSV = "Save it as CSV and import that."
OLD = f"It is an Excel file of the old kind (.xls), or has a password. {SAVE_AS_CSV}"
TOO_LARGE = f"The Excel file is too large: at most 100,000 rows of 20 columns. {SAVE_AS_CSV}"
FAILED = f"The Excel file cannot be read. {SAVE_AS_CSV}"
BUSY = "Another Excel file is being read. Try again in a minute."
REASONS = {"no_workbook": "It is not an Excel file (.xlsx), or it is broken.", "too_large": TOO_LARGE}
"""By the names of `decode_xlsx.py`."""


def read_sheets(stream: BinaryIO) -> list[tuple[str, Records]]:
    """The name and the records of each visible sheet. Raises InvalidStatementFile and ReaderBusy."""
    rows = _decoded(stream)
    names = json.loads(rows.readline())
    if isinstance(names, str):
        raise InvalidStatementFile(REASONS[names])
    return [(name, partial(_records, rows, place)) for place, name in enumerate(names)]


def _records(rows: mmap, sheet: int) -> Iterator[Record]:
    rows.seek(0)
    start = b"[%d, " % sheet
    while row := rows.readline():
        if row.startswith(start):
            _, number, kinds, cells = json.loads(row)
            yield Record(number, cells, "\t".join(cells).encode(), kinds=kinds)


def _decoded(stream: BinaryIO) -> mmap:
    """What the decoder prints, on disk. A mapping needs nobody to close it. Raises the same."""
    with tempfile.TemporaryFile() as source, tempfile.TemporaryFile() as printed:
        stream.seek(0)
        shutil.copyfileobj(stream, source)
        if source.tell() > MAX_BYTES:
            raise InvalidStatementFile(TOO_LARGE)
        source.seek(0)
        try:
            decoders.run(DECODER, decoders.WORKBOOK, source, printed)
        except BlockingIOError:
            raise ReaderBusy(BUSY) from None
        except DecoderFailed as failure:
            raise InvalidStatementFile(TOO_LARGE if failure.is_over_limit else FAILED) from None
        return mmap(printed.fileno(), 0, access=ACCESS_READ)
