"""Import a statement file: every line is kept, joined to its bank transaction and judged. Safe to repeat.

A batch of lines is one commit with what it makes or joins, and judging is the next, as for any message of a
bank. After an interruption the file is imported again: what is stored is known, what is not judged is judged.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice

from banks.base import UnknownBank
from core import ids, request_context, rows
from merchants.models import Merchant
from reconciliation.models import BankTransaction, LineResult, MatchResult, Statement
from reconciliation.statements import ownership
from reconciliation.statements.batch_application import apply_transactions
from reconciliation.statements.line_storage import (
    ALREADY_STORED,
    CountedLine,
    StoredLine,
    store_lines,
    transaction_by_index,
)
from reconciliation.statements.lines import FileProblems
from reconciliation.statements.ownership import BillerIds
from reconciliation.statements.statement_file import OccurrenceCounter, StatementFile

BATCH_SIZE = 500
"""Lines of a commit. Each takes a lock of PostgreSQL's shared table, which has some thousands of them."""
MAX_FILE_NAME_LENGTH = 255
RESULTS = (LineResult.NEW, LineResult.ATTACHED, ALREADY_STORED, LineResult.UNREADABLE)


@dataclass(frozen=True, slots=True)
class LineOutcome:
    """What became of a line. `error`: of one that nobody can read.

    match_result: how its bank transaction was judged.
    """

    number: int
    result: str
    movement_id: str = ""
    match_result: str = ""
    error: str = ""


@dataclass(slots=True)
class ImportSummary:
    """What an import came to: lines by result, and what is wrong with the file as a whole."""

    statement: Statement
    counts: Counter[str] = field(default_factory=Counter)
    problems: FileProblems = field(default_factory=FileProblems)

    @property
    def is_clean(self) -> bool:
        return not self.counts[LineResult.UNREADABLE] and not self.problems.messages


OnBatch = Callable[[Sequence[LineOutcome]], None]


def begin(file: StatementFile, *, bank: str, now: datetime) -> tuple[Statement, OccurrenceCounter]:
    """Look through the file and write down that it is imported.

    Raises UnknownBank, and InvalidStatementFile also for the file of another bank: then nothing is kept.
    """
    if not Merchant.objects.filter(bank=bank).exists():
        raise UnknownBank(name=bank)
    occurrences, billers, total = OccurrenceCounter(), BillerIds(), 0
    for total, file_line in enumerate(file.read_lines(FileProblems()), 1):  # noqa: B007
        occurrences.scan(file_line.sha256)
        billers.add(file_line.biller_id)
    ownership.check_bank(file, billers, bank=bank)
    cause = request_context.current()
    statement = Statement.objects.create(
        id=ids.new("stm_", now),
        bank=bank,
        file_name=file.name[:MAX_FILE_NAME_LENGTH],
        file_sha256=file.sha256,
        actor=cause.actor,
        request_id=cause.request_id,
        created_at=now,
        line_count=total,
    )
    return statement, occurrences


def run(
    file: StatementFile,
    statement: Statement,
    occurrences: OccurrenceCounter,
    *,
    clock: Callable[[], datetime],
    on_batch: OnBatch,
) -> ImportSummary:
    """Import what was begun; `on_batch` is told of each batch when it is done."""
    summary = ImportSummary(statement)
    lines = file.read_lines(summary.problems)
    counted_lines = (CountedLine(file_line, occurrences.count(file_line.sha256)) for file_line in lines)
    for batch in _batches(counted_lines):
        stored = store_lines(statement, batch, now=clock())
        apply_transactions(_not_matched(stored), now=clock())
        results = _outcomes(stored)
        summary.counts.update(line.result for line in results)
        on_batch(results)
    statement.problems = "\n".join(summary.problems)
    statement.completed_at = clock()
    statement.save(update_fields=["problems", "completed_at"])
    return summary


def _batches(counted_lines: Iterator[CountedLine]) -> Iterator[list[CountedLine]]:
    while batch := list(islice(counted_lines, BATCH_SIZE)):
        yield batch


def _not_matched(stored: Sequence[StoredLine]) -> list[BankTransaction]:
    return [
        line.movement
        for line in stored
        if line.movement and line.movement.match_result == MatchResult.PENDING
    ]


@transaction_by_index()
def _outcomes(stored: Sequence[StoredLine]) -> list[LineOutcome]:
    movement_ids = [line.movement.id for line in stored if line.movement]
    match_results = dict(
        rows.run(
            "SELECT id, match_result FROM reconciliation_banktransaction WHERE id = ANY(%s)", [movement_ids]
        ).fetchall()
    )
    return [
        LineOutcome(line.file_line.number, line.result, line.movement.id, match_results[line.movement.id])
        if line.movement
        else LineOutcome(line.file_line.number, line.result, error=line.file_line.error)
        for line in stored
    ]
