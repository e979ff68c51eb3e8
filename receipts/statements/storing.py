"""Lines of a statement become rows, each joined to the receipt of its money: a batch is one commit."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime

from core import rows, vault
from receipts import confirmation_inquiries, inbox, joining
from receipts.models import LineResult, Receipt, Source, Statement, StatementLine, Verdict
from receipts.statements.commits import by_index
from receipts.statements.lines import Row
from receipts.statements.matching import Matching

KNOWN = "known"
"""The result of a line that an earlier import stored."""
LONGEST_WHY = 200
# Words of the line, which stay sealed with it: where columns have shifted they name a payer.
_QUOTED = re.compile(r"""(['"]).*\1""", re.DOTALL)
# By nothing but the digest, and without a join, or a planner that knows neither table yet may prefer to read
# all lines of the day, or all receipts, for each batch.
STORED = """
SELECT bank, receipt_id, account, day, digest, occurrence FROM receipts_statementline WHERE digest = ANY(%s)
"""
Key = tuple[str, date | None, str, int]


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of a file, and which time it is that the same line comes in it."""

    row: Row
    occurrence: int

    @property
    def key(self) -> Key:
        """What a line is known by, at its bank."""
        return self.row.account, self.row.day, self.row.digest, self.occurrence


@dataclass(frozen=True, slots=True)
class Stored:
    """What became of a line: a LineResult or KNOWN; its receipt, unless nobody can read it."""

    row: Row
    result: str
    receipt: Receipt | None = None


@by_index()
def store(statement: Statement, entries: Sequence[Entry], *, now: datetime) -> list[Stored]:
    """Keep those that are new, with what they make or join, and note how far the statement is."""
    joining.hold([_lock_of(statement.bank, entry) for entry in entries])
    known = _known(statement.bank, entries)
    fresh = [entry for entry in entries if entry.key not in known]
    joined = _joined(statement.bank, fresh, now)
    lines = [_line(statement, entry, *joined[entry.key]) for entry in fresh]
    rows.copy_in(lines)
    _park(statement.bank, [line for line in lines if line.result == LineResult.UNREADABLE], now)
    statement.done += len(entries)
    statement.known += len(known)
    statement.save(update_fields=["done", "known"])
    return [_stored(entry, known, joined) for entry in entries]


def _lock_of(bank: str, entry: Entry) -> str:
    line = entry.row.line
    return joining.name_of(bank, line) if line else f"line {bank} {entry.row.digest}"


def _known(bank: str, entries: Sequence[Entry]) -> dict[Key, Receipt | None]:
    """Those that are stored already, and their receipts."""
    wanted = {entry.key for entry in entries}
    stored = rows.run(STORED, [[entry.row.digest for entry in entries]]).fetchall()
    found = {tuple(key): receipt_id for of, receipt_id, *key in stored if of == bank}
    receipts = rows.find(Receipt, "WHERE t.id = ANY(%s)", [known for known in found.values() if known])
    by_id = {receipt.id: receipt for receipt in receipts}
    return {key: by_id.get(known) for key, known in found.items() if key in wanted}


def _joined(
    bank: str, entries: Sequence[Entry], now: datetime
) -> dict[Key, tuple[LineResult, Receipt | None]]:
    """What each new line is, and the receipt that it joins or makes."""
    matching = Matching(bank, [entry.row.line for entry in entries if entry.row.line])
    joined: dict[Key, tuple[LineResult, Receipt | None]] = {}
    for entry in entries:
        line = entry.row.line
        if line is None:
            joined[entry.key] = LineResult.UNREADABLE, None
        elif receipt := matching.take(line):
            joined[entry.key] = LineResult.ATTACHED, receipt
        else:
            made = matching.make(line, entry.row.digest, entry.occurrence, now=now)
            joined[entry.key] = LineResult.NEW, made
    matching.save()
    confirmation_inquiries.ask_about(bank, matching.made, now=now)
    return joined


def _line(statement: Statement, entry: Entry, result: LineResult, receipt: Receipt | None) -> StatementLine:
    row = entry.row
    line = rows.new(
        StatementLine,
        statement_id=statement.id,
        number=row.number,
        bank=statement.bank,
        account=row.account,
        day=row.day,
        digest=row.digest,
        occurrence=entry.occurrence,
        result=result,
        why=_QUOTED.sub("'…'", row.why)[:LONGEST_WHY],
        kind=row.line.kind if row.line else "",
        reference1=row.line.reference1 if row.line else "",
        amount=row.line.amount if row.line else None,
        paid_at=row.line.paid_at if row.line else None,
        receipt_id=receipt.id if receipt else None,
    )
    line.line_sealed = vault.seal(row.raw.decode("latin-1"), context=line.context)
    return line


def _park(bank: str, lines: Sequence[StatementLine], now: datetime) -> None:
    """What nobody can read is a message that waits for staff, like any other."""
    rows.copy_in(
        [
            inbox.draft_notice(bank, line.line, Verdict.UNREADABLE, None, now, Source.STATEMENT)
            for line in lines
        ]
    )


def _stored(
    entry: Entry,
    known: Mapping[Key, Receipt | None],
    joined: Mapping[Key, tuple[LineResult, Receipt | None]],
) -> Stored:
    if entry.key in joined:
        return Stored(entry.row, *joined[entry.key])
    result = KNOWN if entry.row.line else LineResult.UNREADABLE
    return Stored(entry.row, result, known[entry.key])
