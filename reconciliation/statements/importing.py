"""Import a statement file: store every line, join it to its bank transaction, and match that. Safe to repeat.

A batch of lines is one commit, and the match of their bank transactions is the next. After an interruption,
import the file again: stored lines are recognised, and unmatched bank transactions are matched.
"""

import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from typing import Any

from django.db import OperationalError
from django.utils.translation import gettext as _, gettext_lazy

import banks
from audit_trail.acts import Act
from audit_trail.recording import recorded
from banks.base import UnknownBank
from core import ids, request_context
from core.database import rows
from core.vault import CannotOpen
from merchants.models import Merchant
from reconciliation.matching import credits, services as matching, statement_fees
from reconciliation.models import BankTransaction, BankTransactionKind, LineResult, MatchResult, Statement
from reconciliation.statements.line_storage import assign, refuse_moved, store_lines, transaction_by_index
from reconciliation.statements.lines import ALREADY_STORED, FileLine, FileProblems, InvalidStatementFile
from reconciliation.statements.statement_file import MAX_SHOWN, FileContents, StatementFile

log = logging.getLogger("reconciliation")
BATCH_SIZE = 500  # each line takes a lock in PostgreSQL's shared table, which has room for some thousands
MAX_FAILURES = 3  # per batch; the sweep matches the rest, because each failure can take seconds
MAX_FILE_NAME_LENGTH = 255
MAX_LISTED_BILLERS = 3
MAX_TRIED = 10_000  # by the page of an upload
COLUMNS = ("id", "bank", "file_name", "file_sha256", "created_at", "line_count")
OUTCOMES = {
    MatchResult.APPLIED: gettext_lazy("Payments that succeed"),
    MatchResult.PENDING: gettext_lazy("Debits: money that the bank took back"),
    LineResult.ATTACHED: gettext_lazy("Known from the bank: nothing else changes"),
    ALREADY_STORED: gettext_lazy("Imported before: nothing changes"),
    LineResult.UNREADABLE: gettext_lazy("Exceptions: unreadable lines"),
}
RESULTS = (LineResult.NEW, LineResult.ATTACHED, ALREADY_STORED, LineResult.UNREADABLE)


def begin(file: StatementFile, *, bank: str, now: datetime) -> Statement:
    """Read the file once and record its import.

    Raises UnknownBank, and InvalidStatementFile also for a file of another bank; then nothing is stored.
    """
    return record(**columns_of(file, check(file, bank=bank), bank=bank, now=now))


def record(**columns: Any) -> Statement:
    """Record an import. columns: those of `columns_of`."""
    with recorded(Act.STATEMENT_IMPORTED) as recording:
        recording.row = statement = Statement.objects.create(**columns, **request_context.columns())
    return statement


def columns_of(file: StatementFile, found: FileContents, *, bank: str, now: datetime) -> dict[str, Any]:
    """What a Statement and a StatementUpload say about their file."""
    name = file.name[:MAX_FILE_NAME_LENGTH]
    values = (ids.new("stm_", now), bank, name, file.sha256, now, found.line_count)
    return dict(zip(COLUMNS, values, strict=True))


def check(file: StatementFile, *, bank: str) -> FileContents:
    """Read the file once. Raises UnknownBank, and InvalidStatementFile also for a file of another bank."""
    if bank not in Merchant.objects.banks():
        raise UnknownBank(name=bank)
    found = file.read_contents()
    _check_bank(file, found.biller_ids, bank=bank)
    return found


def dry_run(
    file: StatementFile, *, bank: str, now: datetime, most: int | None = None
) -> Iterator[list[FileLine]]:
    """Yield the lines in batches with the results that an import would give them now. Stores nothing.

    Debits get no match result: what they reverse may be in this file.
    """
    paid: set[str] = set()
    remaining = islice(file.read_lines(FileProblems()), most)
    while batch := list(islice(remaining, BATCH_SIZE)):
        refuse_moved(bank, batch)
        _, matcher = assign(bank, batch, now)
        credits.foresee(
            [each for each in matcher.created if each.kind == BankTransactionKind.CREDIT], paid=paid
        )
        yield batch


@dataclass(slots=True)
class DryRun:
    """What an import would do with the first lines of a file: lines and satang by `outcome_of`."""

    counts: Counter[str] = field(default_factory=Counter)
    amounts: Counter[str] = field(default_factory=Counter)
    first: list[FileLine] = field(default_factory=list)  # the first lines with new money

    def add(self, batch: Sequence[FileLine]) -> None:
        for line in batch:
            self.counts[outcome := outcome_of(line)] += 1
            self.amounts[outcome] += line.parsed.amount if line.parsed else 0
            if line.result == LineResult.NEW and len(self.first) < MAX_SHOWN:
                self.first.append(line)

    @property
    def outcomes(self) -> list[tuple[str, int, int]]:
        """The words, lines and satang of each outcome."""
        return [(words_of(name), self.counts[name], self.amounts[name]) for name in sorted(self.counts)]


def try_first(file: StatementFile, *, bank: str, now: datetime) -> DryRun:
    """What an import would do with the first MAX_TRIED lines."""
    tried = DryRun()
    for batch in dry_run(file, bank=bank, now=now, most=MAX_TRIED):
        tried.add(batch)
    return tried


def outcome_of(line: FileLine) -> str:
    """The result of a line, or the match result of its new money."""
    money = line.bank_transaction
    return line.result if line.result != LineResult.NEW or money is None else money.match_result


def words_of(outcome: str) -> str:
    if outcome in OUTCOMES:
        return str(OUTCOMES[outcome])
    return _("Exceptions: %(reason)s") % {"reason": _(str(MatchResult(outcome).label)).lower()}


def run(
    file: StatementFile,
    statement: Statement,
    *,
    clock: Callable[[], datetime],
    on_batch: Callable[[Sequence[FileLine]], None] = lambda lines: None,
    hold: Callable[[], None] = lambda: None,
) -> Counter[str]:
    """Import what `begin` recorded, after the lines that this statement has stored already.

    Returns the number of lines by result. `statement.problems` has what is wrong with the file as a whole.

    on_batch: called after each batch, whose lines have their results then. hold: called in the transaction of
    each batch, and before the end; it may raise to stop the import.
    """
    counts, problems = Counter[str](), FileProblems()
    remaining = islice(file.read_lines(problems), statement.stored_count, None)
    while batch := list(islice(remaining, BATCH_SIZE)):
        store_lines(statement, batch, now=clock(), hold=hold)
        bank_transactions = [line.bank_transaction for line in batch if line.bank_transaction]
        not_matched = [each for each in bank_transactions if each.match_result == MatchResult.PENDING]
        _apply(not_matched, now=clock())
        if any(line.fee for line in batch):
            named = [each.id for each in bank_transactions]
            statement_fees.apply_due(now=clock(), batch=BATCH_SIZE, bank_transactions=named)
        _read_match_results(bank_transactions)
        counts.update(line.result for line in batch)
        on_batch(batch)
    hold()
    statement.problems = "\n".join(problems)
    statement.completed_at = clock()
    statement.save(update_fields=["problems", "completed_at"])
    return counts


def _apply(bank_transactions: Sequence[BankTransaction], *, now: datetime) -> None:
    """Match stored bank transactions of one bank. Errors are logged, and the sweep tries again."""
    # A credit that has a bank id already can be the one that a reversal takes back.
    nameless = [
        each
        for each in bank_transactions
        if each.kind == BankTransactionKind.CREDIT and not each.later_bank_reference
    ]
    others = {each.id for each in bank_transactions} - {each.id for each in nameless}
    failures = 0
    for bank_transaction_id in sorted(others | _apply_together(nameless, now)):
        failures += not matching.try_apply(bank_transaction_id=bank_transaction_id, now=now)
        if failures == MAX_FAILURES:
            log.error(
                "the bank transactions of a statement after %s are left to the sweep", bank_transaction_id
            )
            return


def _apply_together(bank_transactions: Sequence[BankTransaction], now: datetime) -> set[str]:
    """Return the ids of the bank transactions that must be matched one by one.

    Returns all ids if the data of one payment cannot be decrypted. Returns none if the database is down or a
    row is locked. Each single attempt would wait as long again, so the sweep matches them later.
    """
    if not bank_transactions:
        return set()
    try:
        with transaction_by_index():
            return credits.apply_together(bank_transactions, now=now)
    except OperationalError:
        log.exception("%s bank transactions of a statement are left to the sweep", len(bank_transactions))
        return set()
    except CannotOpen:
        log.exception(
            "%s bank transactions of a statement could not be matched together", len(bank_transactions)
        )
        return {each.id for each in bank_transactions}


@transaction_by_index()
def _read_match_results(bank_transactions: Sequence[BankTransaction]) -> None:
    sql = "SELECT id, match_result FROM reconciliation_banktransaction WHERE id = ANY(%s)"
    found = dict(rows.run(sql, [[each.id for each in bank_transactions]]).fetchall())
    for bank_transaction in bank_transactions:
        bank_transaction.match_result = found[bank_transaction.id]


def _check_bank(file: StatementFile, biller_ids: set[str], *, bank: str) -> None:
    """Raises InvalidStatementFile for a file of another bank: its lines would be money that does not exist.

    Two banks may give one biller id to two merchants. Such an id does not exclude the file.
    """
    code = banks.bank_code_of(bank)
    if code and file.bank_code not in ("", code):
        raise InvalidStatementFile(f"It was written by the bank {file.bank_code}, but {bank} is {code}.")
    known = [terms for each in Merchant.objects.of_billers(biller_ids) for terms in each.all_terms]
    owners = [(terms.biller_id, terms.bank) for terms in known if terms.biller_id in biller_ids]
    of_this_bank = {biller_id for biller_id, owner in owners if owner == bank}
    of_other_banks = [(biller_id, owner) for biller_id, owner in owners if biller_id not in of_this_bank]
    if of_other_banks:
        listed = _first_few([f"{biller_id} ({owner})" for biller_id, owner in of_other_banks])
        raise InvalidStatementFile(
            f"It is not a statement of {bank}: merchants of other banks have {listed}."
        )
    if biller_ids and not of_this_bank:
        raise InvalidStatementFile(
            f"No merchant of {bank} has a biller id of this file: {_first_few(biller_ids)}."
        )


def _first_few(found: Collection[str]) -> str:
    more = f" and {len(found) - MAX_LISTED_BILLERS} more" if len(found) > MAX_LISTED_BILLERS else ""
    return ", ".join(sorted(found)[:MAX_LISTED_BILLERS]) + more
