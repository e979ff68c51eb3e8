"""Store the lines of a statement, each joined to its bank transaction. A batch is one commit."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction

from core import rows, vault
from reconciliation.inquiries import confirmation_inquiries
from reconciliation.matching import deduplication
from reconciliation.models import (
    BankTransaction,
    LineResult,
    NotificationResult,
    ReportSource,
    Statement,
    StatementLine,
)
from reconciliation.notifications import intake
from reconciliation.statements.line_matching import LineMatcher
from reconciliation.statements.lines import FileLine, LineKey


@contextmanager
def transaction_by_index() -> Iterator[None]:
    """Open a transaction in which the planner finds rows by index.

    A cached plan from a time when the table was small would read the whole table for each batch. In a new
    database, the import of 100,000 lines took twenty times as long.
    """
    with transaction.atomic():
        rows.run("SET LOCAL enable_seqscan = off", ())
        yield


ALREADY_STORED = "known"
"""The result of a line that an earlier import stored."""
MAX_ERROR_LENGTH = 200
# Errors quote the line, which is stored encrypted: if columns have shifted, the quote may name a payer.
_QUOTED_CONTENT = re.compile(r"""(['"]).*\1""", re.DOTALL)
# Only by digest and without a join: without statistics, PostgreSQL would read all lines of the day, or all
# bank transactions, for each batch.
FIND_STORED = """
SELECT bank, movement_id, biller_id, bank_date, line_sha256, occurrence FROM reconciliation_statementline
    WHERE line_sha256 = ANY(%s)
"""


@dataclass(frozen=True, slots=True)
class StoredLine:
    """A line and its result: a LineResult or ALREADY_STORED. An unreadable line has no bank transaction."""

    file_line: FileLine
    result: str
    movement: BankTransaction | None = None


@transaction_by_index()
def store_lines(
    statement: Statement,
    file_lines: Sequence[FileLine],
    *,
    now: datetime,
    hold: Callable[[], None] = lambda: None,
) -> list[StoredLine]:
    """Store new lines with their bank transactions, and update the progress of the statement.

    hold: called first, in the same transaction; it may raise to stop the import.
    """
    hold()
    deduplication.lock_names([_lock_name(statement.bank, line) for line in file_lines])
    stored = _already_stored(statement.bank, file_lines)
    new_lines = [line for line in file_lines if line.key not in stored]
    matched = _match_lines(statement.bank, new_lines, now)
    lines = [_new_line(statement, line, *matched[line.key]) for line in new_lines]
    rows.copy_in(lines)
    _store_unreadable(statement.bank, [line for line in lines if line.result == LineResult.UNREADABLE], now)
    statement.stored_count += len(file_lines)
    statement.duplicate_count += len(stored)
    statement.save(update_fields=["stored_count", "duplicate_count"])
    return [_stored_line(line, stored, matched) for line in file_lines]


def error_without_content(line: FileLine) -> str:
    return _QUOTED_CONTENT.sub("'…'", line.error)[:MAX_ERROR_LENGTH]


def _lock_name(bank: str, line: FileLine) -> str:
    return deduplication.lock_name(bank, line.parsed) if line.parsed else f"line {bank} {line.sha256}"


def _already_stored(bank: str, lines: Sequence[FileLine]) -> dict[LineKey, BankTransaction | None]:
    """The lines that are stored already, with their bank transactions."""
    wanted = {line.key for line in lines}
    stored = rows.run(FIND_STORED, [[line.sha256 for line in lines]]).fetchall()
    found = {tuple(key): movement_id for of, movement_id, *key in stored if of == bank}
    movement_ids = [movement_id for movement_id in found.values() if movement_id]
    movements = rows.find(BankTransaction, "WHERE t.id = ANY(%s)", movement_ids) if movement_ids else []
    by_id = {movement.id: movement for movement in movements}
    return {key: by_id.get(movement_id) for key, movement_id in found.items() if key in wanted}


def _match_lines(
    bank: str, lines: Sequence[FileLine], now: datetime
) -> dict[LineKey, tuple[LineResult, BankTransaction | None]]:
    """The result of each new line, and the bank transaction that it joins or creates."""
    matcher = LineMatcher(bank, [line.parsed for line in lines if line.parsed])
    matched: dict[LineKey, tuple[LineResult, BankTransaction | None]] = {}
    for line in lines:
        if line.parsed is None:
            matched[line.key] = LineResult.UNREADABLE, None
        elif movement := matcher.take(line.parsed):
            matched[line.key] = LineResult.ATTACHED, movement
        else:
            created = matcher.create(line.parsed, line.sha256, line.occurrence, now=now)
            matched[line.key] = LineResult.NEW, created
    matcher.save()
    confirmation_inquiries.create_for_statement(bank, matcher.created, now=now)
    return matched


def _new_line(
    statement: Statement, file_line: FileLine, result: LineResult, movement: BankTransaction | None
) -> StatementLine:
    line = StatementLine(
        statement_id=statement.id,
        line_number=file_line.number,
        bank=statement.bank,
        biller_id=file_line.biller_id,
        bank_date=file_line.bank_date,
        line_sha256=file_line.sha256,
        occurrence=file_line.occurrence,
        result=result,
        error=error_without_content(file_line),
        kind=file_line.parsed.kind if file_line.parsed else "",
        reference1=file_line.parsed.reference1 if file_line.parsed else "",
        amount=file_line.parsed.amount if file_line.parsed else None,
        paid_at=file_line.parsed.paid_at if file_line.parsed else None,
        movement_id=movement.id if movement else None,
    )
    line.line_sealed = vault.seal(file_line.raw.decode("latin-1"), context=line.context)
    return line


def _store_unreadable(bank: str, lines: Sequence[StatementLine], now: datetime) -> None:
    """Each unreadable line becomes a notification that staff see as an exception."""
    notifications = [
        intake.build_notification(
            bank, line.line, NotificationResult.UNREADABLE, None, now, ReportSource.STATEMENT
        )
        for line in lines
    ]
    rows.copy_in(notifications)
    intake.show(notifications)


def _stored_line(
    line: FileLine,
    stored: Mapping[LineKey, BankTransaction | None],
    matched: Mapping[LineKey, tuple[LineResult, BankTransaction | None]],
) -> StoredLine:
    if line.key in matched:
        return StoredLine(line, *matched[line.key])
    return StoredLine(line, ALREADY_STORED if line.parsed else LineResult.UNREADABLE, stored[line.key])
