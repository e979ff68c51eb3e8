"""Find the bank transaction of each statement line: a stored one without a line, or a new one."""

from collections.abc import Callable, Sequence
from datetime import datetime

from core import ids, rows
from reconciliation.matching import deduplication
from reconciliation.models import BankTransaction, BankTransactionKind, MatchResult, ReportSource
from reconciliation.statements.lines import ParsedLine

MovementKey = tuple[str, str, int]
FIND_SIMILAR = """
WHERE t.reference1 = ANY(%s) AND t.biller_id = ANY(%s) AND t.bank = %s
    AND (t.paid_at >= %s AND t.paid_at < %s OR t.kind = %s)
ORDER BY t.id
"""
FIND_WITH_LINE = "SELECT movement_id FROM reconciliation_statementline WHERE movement_id = ANY(%s)"


class LineMatcher:
    """Assigns a bank transaction to each line of a batch.

    The caller holds the locks of their names (see `deduplication.lock_names`).
    """

    def __init__(self, bank: str, lines: Sequence[ParsedLine]) -> None:
        self._bank = bank
        self._unassigned: dict[MovementKey, list[BankTransaction]] = {}
        self.created: list[BankTransaction] = []
        similar = _similar(bank, lines) if lines else []
        self._orphans = _reversals_without_credit(similar)
        for movement in _without_line(similar):
            self._unassigned.setdefault(_movement_key(movement), []).append(movement)
        self._assigned: dict[ParsedLine, list[BankTransaction]] = {}
        self._reversals: dict[MovementKey, list[deduplication.MovementReport]] = {}
        reports: list[deduplication.MovementReport] = [*similar, *lines]
        for report in reports:
            if report.kind == BankTransactionKind.REVERSAL:
                self._reversals.setdefault(_movement_key(report), []).append(report)
        # Lines with an equal second come first, so that no line takes the bank transaction of its neighbour.
        remaining = [line for line in lines if not self._assign(line, _is_same_second)]
        for line in remaining:
            self._assign(line, self._is_same_movement)

    def take(self, line: ParsedLine) -> BankTransaction | None:
        """The stored bank transaction of this line, if any. Equal lines get one after the other."""
        assigned = self._assigned.get(line)
        return assigned.pop(0) if assigned else None

    def _is_same_movement(self, movement: BankTransaction, line: ParsedLine) -> bool:
        reversals = self._reversals.get(_movement_key(line), []) if line.kind == "credit" else []
        return deduplication.is_same_movement(movement, line) and not deduplication.is_separated_by_reversal(
            movement, line, reversals
        )

    def _assign(self, line: ParsedLine, fits: Callable[[BankTransaction, ParsedLine], bool]) -> bool:
        """Assign the closest bank transaction that fits; no other line gets it."""
        unassigned = self._unassigned.get(_movement_key(line), [])
        fitting = [movement for movement in unassigned if fits(movement, line)]
        if not fitting:
            return False
        chosen = min(fitting, key=lambda movement: deduplication.closeness(movement, line))
        unassigned.remove(chosen)
        self._assigned.setdefault(line, []).append(chosen)
        return True

    def create(self, line: ParsedLine, sha256: str, occurrence: int, *, now: datetime) -> BankTransaction:
        """Create a bank transaction that only this line reports."""
        movement = BankTransaction(
            id=ids.new("rcp_", now),
            bank=self._bank,
            # A line has no transaction id; this one is the same in every export of its file.
            bank_transaction_id=f"statement-{sha256[:40]}-{occurrence}",
            source=ReportSource.STATEMENT,
            kind=line.kind,
            is_confirmed=BankTransactionKind(line.kind) != BankTransactionKind.CREDIT,
            biller_id=line.biller_id,
            reference1=line.reference1,
            reference2=line.reference2,
            reference3=line.reference3,
            amount=line.amount,
            paid_at=line.paid_at,
            payer_name=line.payer_name,
            payer_bank_code=line.payer_bank_code,
            received_at=now,
        )
        self.created.append(movement)
        return movement

    def save(self) -> None:
        """Store the created bank transactions, with the ids that connect reversals to their credits.

        The earliest reversal chooses first: a later one may also fit a credit that came after the first.
        """
        for orphan in sorted(self._orphans, key=lambda movement: movement.paid_at):
            self._name_credit_of(orphan)
        for debit in sorted(self.created, key=lambda movement: movement.paid_at):
            if debit.kind == BankTransactionKind.REVERSAL and (credit := self._only_credit(debit)):
                debit.bank_transaction_id = credit.current_bank_transaction_id
        rows.copy_in(self.created)

    def _name_credit_of(self, orphan: BankTransaction) -> None:
        """Name the credit that only these lines report, if exactly one fits and no stored credit does."""
        before = deduplication.reversal_cutoff(orphan)
        fitting = [
            movement
            for movement in self._created_like(orphan)
            if movement.kind == BankTransactionKind.CREDIT
            and movement.paid_at < before
            and not movement.later_bank_transaction_id
        ]
        if len(fitting) == 1 and not deduplication.unidentified_credits(orphan):
            fitting[0].later_bank_transaction_id = orphan.bank_transaction_id

    def _only_credit(self, debit: BankTransaction) -> BankTransaction | None:
        """The credit that a debit reverses: the only one that fits and is not reversed yet."""
        stored = BankTransaction.objects.filter(
            bank=self._bank, biller_id=debit.biller_id, reference1=debit.reference1, amount=debit.amount
        )
        similar = [*stored, *self._created_like(debit)]
        reversals = [each for each in similar if each.kind == BankTransactionKind.REVERSAL]
        reversed_ids = {each.bank_transaction_id for each in reversals}
        reversed_ids |= {each.later_bank_transaction_id for each in reversals}
        remaining = [
            movement
            for movement in similar
            if movement.kind == BankTransactionKind.CREDIT
            and movement.paid_at < deduplication.reversal_cutoff(debit)
            and not {movement.bank_transaction_id, movement.current_bank_transaction_id} & reversed_ids
        ]
        if len(remaining) != 1 or deduplication.find_by_bank_id(
            self._bank, remaining[0].current_bank_transaction_id, BankTransactionKind.REVERSAL
        ):
            return None
        credit: BankTransaction = remaining[0]
        return credit

    def _created_like(self, movement: BankTransaction) -> list[BankTransaction]:
        return [created for created in self.created if _movement_key(created) == _movement_key(movement)]


def _similar(bank: str, lines: Sequence[ParsedLine]) -> list[BankTransaction]:
    """Bank transactions that these lines may report, oldest first, and all reversals of their references."""
    billers, references = {line.biller_id for line in lines}, {line.reference1 for line in lines}
    since, until = deduplication.bank_day_range(line.paid_at for line in lines)
    return rows.find(
        BankTransaction,
        FIND_SIMILAR,
        list(references),
        list(billers),
        bank,
        since,
        until,
        BankTransactionKind.REVERSAL,
    )


def _without_line(movements: Sequence[BankTransaction]) -> list[BankTransaction]:
    """Run a separate query: without table statistics, a join could read both tables."""
    if not movements:
        return []
    wanted = [movement.id for movement in movements]
    with_line = {movement_id for (movement_id,) in rows.run(FIND_WITH_LINE, [wanted]).fetchall()}
    return [movement for movement in movements if movement.id not in with_line]


def _reversals_without_credit(movements: Sequence[BankTransaction]) -> list[BankTransaction]:
    """Reversals of credits that no report has named yet."""
    return [
        movement
        for movement in movements
        if movement.kind == BankTransactionKind.REVERSAL
        and movement.match_result == MatchResult.UNMATCHED
        and movement.source != ReportSource.STATEMENT
        and not deduplication.find_by_bank_id(
            movement.bank, movement.bank_transaction_id, BankTransactionKind.CREDIT
        )
    ]


def _movement_key(money: deduplication.MovementReport) -> MovementKey:
    return money.biller_id, money.reference1, money.amount


def _is_same_second(movement: BankTransaction, line: ParsedLine) -> bool:
    is_other_second, _ = deduplication.closeness(movement, line)
    return not is_other_second and deduplication.is_same_movement(movement, line)
