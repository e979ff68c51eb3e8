"""Import a statement file: every line is kept, joined to its receipt and judged. Safe to repeat.

A batch of lines is one commit with what it makes or joins, and judging is the next, as for any message of a
bank. After an interruption the file is imported again: what is stored is known, what is not judged is judged.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice

from banks.base import UnknownBank
from core import ids, origin, rows
from merchants.models import Merchant
from receipts.models import LineResult, Outcome, Receipt, Statement
from receipts.statements import owning
from receipts.statements.commits import by_index
from receipts.statements.judging import judge
from receipts.statements.lines import Complaints
from receipts.statements.owning import Billers
from receipts.statements.reading import File, Occurrences
from receipts.statements.storing import KNOWN, Entry, Stored, store

BATCH = 500
"""Lines of a commit. Each takes a lock of PostgreSQL's shared table, which has some thousands of them."""
LONGEST_NAME = 255
RESULTS = (LineResult.NEW, LineResult.ATTACHED, KNOWN, LineResult.UNREADABLE)


@dataclass(frozen=True, slots=True)
class Result:
    """What became of a line. `why`: of one that nobody can read. outcome: how its receipt was judged."""

    number: int
    result: str
    receipt_id: str = ""
    outcome: str = ""
    why: str = ""


@dataclass(slots=True)
class Summary:
    """What an import came to: lines by result, and what is wrong with the file as a whole."""

    statement: Statement
    counts: Counter[str] = field(default_factory=Counter)
    complaints: Complaints = field(default_factory=Complaints)

    @property
    def is_clean(self) -> bool:
        return not self.counts[LineResult.UNREADABLE] and not self.complaints.said


Passed = Callable[[Sequence[Result]], None]


def begin(file: File, *, bank: str, by: str, now: datetime) -> tuple[Statement, Occurrences]:
    """Look through the file and write down that it is imported.

    Raises UnknownBank, and NotAStatement also for the file of another bank: then nothing is kept.
    """
    if not Merchant.objects.filter(bank=bank).exists():
        raise UnknownBank(name=bank)
    occurrences, billers, total = Occurrences(), Billers(), 0
    for total, row in enumerate(file.rows(Complaints()), 1):  # noqa: B007
        occurrences.look(row.digest)
        billers.look(row.account)
    owning.check(file, billers, bank=bank)
    statement = Statement.objects.create(
        id=ids.new("stm_", now),
        bank=bank,
        name=file.name[:LONGEST_NAME],
        digest=file.digest,
        imported_by=by,
        request_id=origin.current().request_id,
        created_at=now,
        total=total,
    )
    return statement, occurrences


def run(
    file: File,
    statement: Statement,
    occurrences: Occurrences,
    *,
    clock: Callable[[], datetime],
    passed: Passed,
) -> Summary:
    """Import what was begun; `passed` is told of each batch when it is done."""
    summary = Summary(statement)
    told = file.rows(summary.complaints)
    entries = (Entry(row, occurrences.count(row.digest)) for row in told)
    for batch in _batches(entries):
        stored = store(statement, batch, now=clock())
        judge(statement.bank, _not_judged(stored), now=clock())
        results = _results(stored)
        summary.counts.update(one.result for one in results)
        passed(results)
    statement.complaints = "\n".join(summary.complaints)
    statement.ended_at = clock()
    statement.save(update_fields=["complaints", "ended_at"])
    return summary


def _batches(entries: Iterator[Entry]) -> Iterator[list[Entry]]:
    while batch := list(islice(entries, BATCH)):
        yield batch


def _not_judged(stored: Sequence[Stored]) -> list[Receipt]:
    return [one.receipt for one in stored if one.receipt and one.receipt.outcome == Outcome.WAITING]


@by_index()
def _results(stored: Sequence[Stored]) -> list[Result]:
    made = [one.receipt.id for one in stored if one.receipt]
    outcomes = dict(
        rows.run("SELECT id, outcome FROM receipts_receipt WHERE id = ANY(%s)", [made]).fetchall()
    )
    return [
        Result(one.row.number, one.result, one.receipt.id, outcomes[one.receipt.id])
        if one.receipt
        else Result(one.row.number, one.result, why=one.row.why)
        for one in stored
    ]
