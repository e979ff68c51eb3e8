"""Store the lines of a statement, each joined to its bank transaction. A batch is one commit."""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime

from django.db import transaction

from core import vault
from core.database import rows
from reconciliation.inquiries import confirmation_inquiries
from reconciliation.matching import deduplication, intake
from reconciliation.models import (
    BankTransaction,
    LineResult,
    NotificationResult,
    ReportSource,
    Statement,
    StatementLine,
)
from reconciliation.statements.line_matching import LineMatcher
from reconciliation.statements.lines import ALREADY_STORED, FileLine, LineKey


@contextmanager
def transaction_by_index() -> Iterator[None]:
    """Open a transaction in which the planner finds rows by index.

    A cached plan from a time when the table was small would read the whole table for each batch. In a new
    database, the import of 100,000 lines took twenty times as long.
    """
    with transaction.atomic():
        rows.run("SET LOCAL enable_seqscan = off", ())
        yield


MAX_ERROR_LENGTH = 200
# Errors quote the line, which is stored encrypted: if columns have shifted, the quote may name a payer.
_QUOTED_CONTENT = re.compile(r"""(['"]).*\1""", re.DOTALL)
# Only by digest and without a join: without statistics, PostgreSQL would read all lines of the day, or all
# bank transactions, for each batch.
FIND_STORED = """
SELECT bank, bank_transaction_id, biller_id, bank_date, line_sha256, occurrence
FROM reconciliation_statementline
WHERE line_sha256 = ANY(%s)
"""


@transaction_by_index()
def store_lines(
    statement: Statement,
    file_lines: Sequence[FileLine],
    *,
    now: datetime,
    hold: Callable[[], None] = lambda: None,
) -> None:
    """Store new lines with their bank transactions, and update the progress of the statement.

    hold: called first, in the same transaction; it may raise to stop the import.
    """
    hold()
    bank = statement.bank
    deduplication.lock_names(
        deduplication.lock_name(bank, line.parsed) if line.parsed else f"line {bank} {line.sha256}"
        for line in file_lines
    )
    stored = _already_stored(bank, file_lines)
    for line in file_lines:
        line.result = ALREADY_STORED if line.parsed and line.key in stored else LineResult.UNREADABLE
        line.bank_transaction = stored.get(line.key)
    new_lines = [line for line in file_lines if line.key not in stored]
    matcher = LineMatcher(bank, new_lines)
    matcher.assign(now)
    confirmation_inquiries.create_for_statement(bank, matcher.created, now=now)
    lines = [_new_line(statement, line) for line in new_lines]
    rows.copy_in(lines)
    # Each unreadable line becomes a notification that staff see as an exception.
    unreadable = [
        intake.build_notification(bank, line.line, NotificationResult.UNREADABLE, now, ReportSource.STATEMENT)
        for line in lines
        if line.result == LineResult.UNREADABLE
    ]
    rows.copy_in(unreadable)
    intake.show(unreadable)
    statement.stored_count += len(file_lines)
    statement.duplicate_count += len(stored)
    statement.save(update_fields=["stored_count", "duplicate_count"])


def error_without_content(line: FileLine) -> str:
    return _QUOTED_CONTENT.sub("'…'", line.error)[:MAX_ERROR_LENGTH]


def _already_stored(bank: str, lines: Sequence[FileLine]) -> dict[LineKey, BankTransaction | None]:
    """The lines that are stored already, with their bank transactions."""
    wanted = {line.key for line in lines}
    stored = rows.run(FIND_STORED, [[line.sha256 for line in lines]]).fetchall()
    found = {tuple(key): bank_transaction_id for of, bank_transaction_id, *key in stored if of == bank}
    bank_transaction_ids = [
        bank_transaction_id for bank_transaction_id in found.values() if bank_transaction_id
    ]
    bank_transactions = (
        rows.find(BankTransaction, "WHERE t.id = ANY(%s)", bank_transaction_ids)
        if bank_transaction_ids
        else []
    )
    by_id = {each.id: each for each in bank_transactions}
    return {
        key: by_id.get(bank_transaction_id) for key, bank_transaction_id in found.items() if key in wanted
    }


def _new_line(statement: Statement, file_line: FileLine) -> StatementLine:
    line = StatementLine(
        statement_id=statement.id,
        line_number=file_line.number,
        bank=statement.bank,
        biller_id=file_line.biller_id,
        bank_date=file_line.bank_date,
        line_sha256=file_line.sha256,
        occurrence=file_line.occurrence,
        result=file_line.result,
        error=error_without_content(file_line),
        # With the row itself, each would refer to the other, and stay in memory for long.
        bank_transaction_id=file_line.bank_transaction.id if file_line.bank_transaction else None,
    )
    if report := file_line.parsed:
        line.kind, line.reference1, line.amount = report.kind, report.reference1, report.amount
        line.paid_at = report.paid_at
    line.line_sealed = vault.seal(file_line.raw.decode("latin-1"), context=line.context)
    return line
