"""Store the lines of a statement, each joined to its bank transaction. A batch is one commit."""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction

from core import vault
from core.database import rows
from ledger.services import Fee
from merchants.models import Merchant
from reconciliation.inquiries import confirmation_inquiries
from reconciliation.matching import deduplication, intake, statement_fees
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
# Several imports of a bank store lines at once, but none while one is undone.
SHARE_LINES = "SELECT pg_advisory_xact_lock_shared(hashtextextended('statement lines ' || %s, 0))"
# Errors quote the line, which is stored encrypted: if columns have shifted, the quote may name a payer.
_QUOTED_CONTENT = re.compile(r"""(['"]).*\1""", re.DOTALL)
# Only by digest and without a join: without statistics, PostgreSQL would read all lines of the day, or all
# bank transactions, for each batch.
FIND_STORED = """
SELECT bank, id, bank_transaction_id, fee, fee_vat, biller_id, bank_date, line_sha256, occurrence
FROM reconciliation_statementline
WHERE line_sha256 = ANY(%s)
"""
# The first file that names the fee of a line may be a later one.
SET_FEES = """
UPDATE reconciliation_statementline AS line
SET fee = named.fee, fee_vat = named.fee_vat, is_fee_due = line.kind = 'credit'
FROM unnest(%s::bigint[], %s::bigint[], %s::bigint[]) AS named (id, fee, fee_vat)
WHERE line.id = named.id
"""


@transaction_by_index()
def store_lines(
    statement: Statement,
    file_lines: Sequence[FileLine],
    *,
    now: datetime,
    hold: Callable[[], None] = lambda: None,
) -> None:
    """Store new lines with their money, and the progress. hold: called first; it may raise to stop all."""
    hold()
    bank = statement.bank
    rows.run(SHARE_LINES, [bank])
    refuse_moved(bank, file_lines)
    deduplication.lock_names(
        deduplication.lock_name(bank, line.parsed) if line.parsed else f"line {bank} {line.sha256}"
        for line in file_lines
    )
    stored, matcher = assign(bank, file_lines, now)
    matcher.save()
    confirmation_inquiries.create_for_statement(bank, matcher.created, now=now)
    lines = [_new_line(statement, line) for line in file_lines if line.key not in stored]
    rows.copy_in(lines)
    statement.fee_count += _learn_fees(file_lines, stored, now)
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
    statement.save(update_fields=["stored_count", "duplicate_count", "fee_count"])


def refuse_moved(bank: str, file_lines: Sequence[FileLine]) -> None:
    """Lines of merchants that have moved become unreadable, and staff see them."""
    gone = Merchant.objects.filter(moved_at__isnull=False)
    moved = {terms.biller_id for each in gone for terms in each.all_terms if terms.bank == bank}
    for line in file_lines:
        if line.biller_id and line.biller_id in moved:
            line.parsed, line.fee, line.content = None, None, line.raw
            line.error = "it is of a merchant that has moved"


def assign(
    bank: str, file_lines: Sequence[FileLine], now: datetime
) -> tuple[dict[LineKey, "_Stored"], LineMatcher]:
    """Give each line its result and its bank transaction, and return which are stored. Stores nothing."""
    stored = already_stored(bank, file_lines)
    known = _bank_transactions(stored.values())
    for line in file_lines:
        line.result = ALREADY_STORED if line.parsed and line.key in stored else LineResult.UNREADABLE
        if found := stored.get(line.key):
            line.bank_transaction = known.get(found.bank_transaction_id or "")
    matcher = LineMatcher(bank, [line for line in file_lines if line.key not in stored])
    matcher.assign(now)
    return stored, matcher


def error_without_content(line: FileLine) -> str:
    return _QUOTED_CONTENT.sub("'…'", line.error)[:MAX_ERROR_LENGTH]


@dataclass(frozen=True, slots=True)
class _Stored:
    """What is stored of a line: its key in the table, its bank transaction and its fee."""

    id: int
    bank_transaction_id: str | None
    fee: Fee | None


def already_stored(bank: str, lines: Sequence[FileLine]) -> dict[LineKey, _Stored]:
    wanted = {line.key for line in lines}
    found = {}
    for of, line_id, bank_transaction_id, fee, vat, *key in rows.run(
        FIND_STORED, [[line.sha256 for line in lines]]
    ).fetchall():
        if of == bank and tuple(key) in wanted:
            named = None if fee is None else Fee(fee, vat)
            found[tuple(key)] = _Stored(line_id, bank_transaction_id, named)
    return found


def _bank_transactions(stored: Collection[_Stored]) -> dict[str, BankTransaction]:
    named = [each.bank_transaction_id for each in stored if each.bank_transaction_id]
    found = rows.find(BankTransaction, "WHERE t.id = ANY(%s)", named) if named else []
    return {each.id: each for each in found}


def _learn_fees(lines: Sequence[FileLine], stored: Mapping[LineKey, _Stored], now: datetime) -> int:
    """Keep the fees of lines that an earlier file reported without one. Ask about those with another one.

    Returns how many fees this file named anew.
    """
    missing, contradicted = {}, 0
    for line in lines:
        known = stored.get(line.key)
        if known is None or line.bank_transaction is None or line.fee in (None, known.fee):
            continue
        if known.fee is None:
            missing[known.id] = line.fee
        else:
            statement_fees.contradict(line.bank_transaction, line.raw, now)
            contradicted += 1
    if missing:
        fees = [[each.amount for each in missing.values()], [each.vat for each in missing.values()]]
        rows.run(SET_FEES, [list(missing), *fees])
    return len(missing) + contradicted


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
    if fee := file_line.fee:
        line.fee, line.fee_vat = fee.amount, fee.vat
        # The payment of a new bank transaction takes it from here.
        line.is_fee_due = line.kind == "credit" and line.result == LineResult.ATTACHED
    line.line_sealed = vault.seal(file_line.raw.decode("latin-1"), context=line.context)
    return line
