"""A statement file of any format: detects the format and reads the lines, never the whole file at once."""

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import BinaryIO, Literal, get_args

from banks.base import TransactionKind
from reconciliation.statements import bot_format, table_format, text_files, xlsx_files
from reconciliation.statements.lines import (
    FileLine,
    FileProblems,
    InvalidStatementFile,
    Record,
    numbered_lines,
)
from reconciliation.statements.table_format import Records, Table
from reconciliation.statements.text_files import SEPARATORS

StatementFormat = Literal["bot", "csv", "xlsx"]
FORMATS: tuple[StatementFormat, ...] = get_args(StatementFormat)
MAX_LINES = 1_000_000  # 100 MB to count equal lines; two days of a shop with 500,000 payments a day
MAX_SHOWN = 10
MAX_BILLERS = 10_000  # biller ids of a file that are compared with ours; the first ones decide
UNKNOWN = "It is neither a cross-bank bill payment file nor a CSV file with a line of column names."
NO_TABLE = "No visible sheet of the Excel file has a line with the names of the columns."


@dataclass(slots=True)
class FileContents:
    """What a file says, of all its readable lines: staff see it before the import."""

    line_count: int = 0
    unreadable_count: int = 0
    first: list[FileLine] = field(default_factory=list)  # the first lines
    unreadable: list[FileLine] = field(default_factory=list)  # the first that cannot be read
    counts: Counter[TransactionKind] = field(default_factory=Counter)
    amounts: Counter[TransactionKind] = field(default_factory=Counter)
    paid_from: datetime | None = None
    paid_until: datetime | None = None
    biller_ids: set[str] = field(default_factory=set)
    problems: FileProblems = field(default_factory=FileProblems)


@dataclass(frozen=True, slots=True)
class StatementFile:
    """A file that can be read several times."""

    stream: BinaryIO
    name: str
    format: StatementFormat
    sha256: str
    encoding: str = ""  # empty for `xlsx`
    bank_code: str = ""  # three digits of the bank that wrote it, if the file names it
    table: Table | None = None  # None for the format `bot`

    def read_lines(self, problems: FileProblems) -> Iterator[FileLine]:
        """The lines; `problems` is complete after the last one. Raises InvalidStatementFile."""
        seen: Counter[bytes] = Counter()  # 100 bytes for each line
        for line in self._read_uncounted(problems):
            digest = bytes.fromhex(line.sha256[:32])
            seen[digest] += 1
            line.occurrence = seen[digest]
            yield line

    def _read_uncounted(self, problems: FileProblems) -> Iterator[FileLine]:
        """The lines without their occurrences, in little memory. Raises InvalidStatementFile."""
        self.stream.seek(0)
        bot = bot_format.read_lines(numbered_lines(self.stream), problems)
        for count, line in enumerate(table_format.read_lines(self.table) if self.table else bot, 1):
            if count > MAX_LINES:
                raise InvalidStatementFile(
                    f"The file has more than {MAX_LINES:,} lines. Ask the bank for files of shorter periods."
                )
            yield line

    def read_contents(self) -> FileContents:
        """Raises InvalidStatementFile."""
        found = FileContents()
        for line in self._read_uncounted(found.problems):
            found.line_count += 1
            if len(found.first) < MAX_SHOWN:
                found.first.append(line)
            if (bank_transaction := line.parsed) is None:
                found.unreadable_count += 1
                if len(found.unreadable) < MAX_SHOWN:
                    found.unreadable.append(line)
                continue
            found.counts[bank_transaction.kind] += 1
            found.amounts[bank_transaction.kind] += bank_transaction.amount
            found.paid_from = min(found.paid_from or bank_transaction.paid_at, bank_transaction.paid_at)
            found.paid_until = max(found.paid_until or bank_transaction.paid_at, bank_transaction.paid_at)
            if len(found.biller_ids) < MAX_BILLERS:
                found.biller_ids.add(bank_transaction.biller_id)
        return found


def open_file(stream: BinaryIO, name: str, form: StatementFormat | None = None) -> StatementFile:
    """Detect the format unless `form` is given. Raises InvalidStatementFile, and ReaderBusy for `xlsx`."""
    stream.seek(0)
    digest = hashlib.file_digest(stream, "sha256").hexdigest()  # type: ignore[arg-type]  # it has `readinto`
    stream.seek(0)
    _, first = next(numbered_lines(stream), (0, b""))
    if not first:
        raise InvalidStatementFile("The file is empty.")
    if first.startswith(xlsx_files.OLD_START):
        raise InvalidStatementFile(xlsx_files.OLD)
    if form == "xlsx" or (form is None and first.startswith(xlsx_files.START)):
        return StatementFile(stream, name, "xlsx", digest, table=_only_sheet(stream))
    encoding = text_files.find_encoding(stream)
    if form == "bot" or (form is None and bot_format.LINE_START.match(first)):
        code = bot_format.bank_code_of(first)
        return StatementFile(stream, name, "bot", digest, encoding, bank_code=code)
    return StatementFile(stream, name, "csv", digest, encoding, table=_separated(stream, encoding))


def _separated(stream: BinaryIO, encoding: str) -> Table:
    """Raises InvalidStatementFile, also if a text could make a table with another separator."""
    readings = [
        (name, partial(text_files.read_records, stream, encoding, separator))
        for name, separator in SEPARATORS.items()
    ]
    (name, header, records), *others = sorted(_headers(readings, UNKNOWN), key=lambda found: found[1].number)
    for other_name, other, _ in others:
        if table_format.is_complete(other):
            raise InvalidStatementFile(
                f"Line {header.number} has names of columns between {name}, and line {other.number} between "
                f"{other_name}. Correct the line in which they are part of a text."
            )
    return table_format.find_table(header, records)


def _only_sheet(stream: BinaryIO) -> Table:
    """Raises InvalidStatementFile, also if several sheets could be the statement."""
    found = _headers(xlsx_files.read_sheets(stream), NO_TABLE)
    complete = [each for each in found if table_format.is_complete(each[1])]
    if len(complete) > 1:
        names = ", ".join(repr(sheet) for sheet, _, _ in complete)
        raise InvalidStatementFile(f"Several sheets have the columns of a statement: {names}. Keep one.")
    sheet, header, records = (complete or found)[0]
    return table_format.find_table(header, records, sheet)


def _headers(readings: Iterable[tuple[str, Records]], unknown: str) -> list[tuple[str, Record, Records]]:
    """The readings of a file that have a line with names of columns. Raises InvalidStatementFile if none."""
    found, refusal = [], InvalidStatementFile(unknown)
    for name, records in readings:
        try:
            header = table_format.find_header(records)
        except InvalidStatementFile as error:
            refusal = refusal if refusal.args[0] != unknown else error
            continue
        if header:
            found.append((name, header, records))
    if not found:
        raise refusal
    return found


def decode_line(line: bytes) -> str:
    """Return a line as text for display. The line may have any bytes."""
    try:
        return line.decode()
    except UnicodeDecodeError:
        return line.decode(bot_format.ENCODING, "backslashreplace")
