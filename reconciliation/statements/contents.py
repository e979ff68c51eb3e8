"""What a file says, found by reading it once: staff see it before the import."""

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime

from banks.base import TransactionKind
from reconciliation.statements.lines import FileLine, FileProblems
from reconciliation.statements.statement_file import StatementFile

MAX_SHOWN = 10
MAX_BILLERS = 10_000  # biller ids of a file that are compared with ours; the first ones decide


@dataclass(slots=True)
class FileContents:
    """first and unreadable: the first lines of each kind. counts and amounts: of the readable lines.

    paid_from and paid_until: of all readable lines.
    """

    line_count: int = 0
    unreadable_count: int = 0
    first: list[FileLine] = field(default_factory=list)
    unreadable: list[FileLine] = field(default_factory=list)
    counts: Counter[TransactionKind] = field(default_factory=Counter)
    amounts: Counter[TransactionKind] = field(default_factory=Counter)
    paid_from: datetime | None = None
    paid_until: datetime | None = None
    biller_ids: set[str] = field(default_factory=set)
    problems: FileProblems = field(default_factory=FileProblems)


def read(file: StatementFile) -> FileContents:
    """Raises InvalidStatementFile."""
    found = FileContents()
    for line in file.read_lines(found.problems):
        found.line_count += 1
        if len(found.first) < MAX_SHOWN:
            found.first.append(line)
        if (movement := line.parsed) is None:
            found.unreadable_count += 1
            if len(found.unreadable) < MAX_SHOWN:
                found.unreadable.append(line)
            continue
        found.counts[movement.kind] += 1
        found.amounts[movement.kind] += movement.amount
        found.paid_from = min(found.paid_from or movement.paid_at, movement.paid_at)
        found.paid_until = max(found.paid_until or movement.paid_at, movement.paid_at)
        if len(found.biller_ids) < MAX_BILLERS:
            found.biller_ids.add(movement.biller_id)
    return found
