"""Which bank transaction a line of a statement belongs to: one that is there and has no line yet, or a new
one.
"""

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
    """The bank transactions of a batch of lines, one to each line.

    The caller holds the locks of their money.
    """

    def __init__(self, bank: str, lines: Sequence[ParsedLine]) -> None:
        self._bank = bank
        self._unassigned: dict[MovementKey, list[BankTransaction]] = {}
        self._created: list[BankTransaction] = []
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
        # All lines choose by the second first, so that no line takes the bank transaction of its neighbour.
        remaining = [line for line in lines if not self._assign(line, _is_same_second)]
        for line in remaining:
            self._assign(line, self._is_same_movement)

    def take(self, line: ParsedLine) -> BankTransaction | None:
        """The bank transaction of this money that was without a line, if any.

        Equal lines get one after the other.
        """
        assigned = self._assigned.get(line)
        return assigned.pop(0) if assigned else None

    def _is_same_movement(self, movement: BankTransaction, line: ParsedLine) -> bool:
        reversals = self._reversals.get(_movement_key(line), []) if line.kind == "credit" else []
        return deduplication.is_same_movement(movement, line) and not deduplication.is_separated_by_reversal(
            movement, line, reversals
        )

    def _assign(self, line: ParsedLine, fits: Callable[[BankTransaction, ParsedLine], bool]) -> bool:
        """Give the nearest fitting bank transaction to the line; no other line gets it."""
        unassigned = self._unassigned.get(_movement_key(line), [])
        fitting = [movement for movement in unassigned if fits(movement, line)]
        if not fitting:
            return False
        chosen = min(fitting, key=lambda movement: deduplication.closeness(movement, line))
        unassigned.remove(chosen)
        self._assigned.setdefault(line, []).append(chosen)
        return True

    def create(self, line: ParsedLine, sha256: str, occurrence: int, *, now: datetime) -> BankTransaction:
        """A bank transaction of what nobody else has told."""
        movement = BankTransaction(
            id=ids.new("rcp_", now),
            bank=self._bank,
            bank_transaction_id=_generated_transaction_id(sha256, occurrence),
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
        self._created.append(movement)
        return movement

    @property
    def created(self) -> Sequence[BankTransaction]:
        """What no bank transaction was there for."""
        return self._created

    def save(self) -> None:
        """Store those that were made, with the names that tie reversals to their credits.

        The earliest reversal chooses first: of two, the other may fit a credit that came after this one too.
        """
        for orphan in sorted(self._orphans, key=lambda movement: movement.paid_at):
            self._name_credit_of(orphan)
        for debit in sorted(self._created, key=lambda movement: movement.paid_at):
            if debit.kind == BankTransactionKind.REVERSAL and (credit := self._only_credit(debit)):
                debit.bank_transaction_id = credit.current_bank_transaction_id
        rows.copy_in(self._created)

    def _name_credit_of(self, orphan: BankTransaction) -> None:
        """Only these lines tell of the credit: the one of them that fits, if none that is stored does."""
        before = deduplication.reversal_cutoff(orphan)
        fitting = [
            movement
            for movement in self._created_like(orphan)
            if movement.kind == BankTransactionKind.CREDIT
            and movement.paid_at < before
            and not movement.later_bank_transaction_id
        ]
        if len(fitting) == 1 and not deduplication.unidentified_credits(orphan).exists():
            fitting[0].later_bank_transaction_id = orphan.bank_transaction_id

    def _only_credit(self, debit: BankTransaction) -> BankTransaction | None:
        """The credit that a debit takes back: the one that fits and that nothing has taken back yet."""
        stored = BankTransaction.objects.filter(
            bank=self._bank, biller_id=debit.biller_id, reference1=debit.reference1, amount=debit.amount
        )
        similar = [*stored, *self._created_like(debit)]
        reversed_ids = {
            movement.bank_transaction_id
            for movement in similar
            if movement.kind == BankTransactionKind.REVERSAL
        }
        reversed_ids |= {
            movement.later_bank_transaction_id
            for movement in similar
            if movement.kind == BankTransactionKind.REVERSAL
        }
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
        return [created for created in self._created if _movement_key(created) == _movement_key(movement)]


def _similar(bank: str, lines: Sequence[ParsedLine]) -> list[BankTransaction]:
    """Bank transactions that could be one of these, oldest first, and every reversal of their money."""
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
    """Asked for by itself: a join of two tables that the planner does not know may read all of both."""
    if not movements:
        return []
    wanted = [movement.id for movement in movements]
    with_line = {movement_id for (movement_id,) in rows.run(FIND_WITH_LINE, [wanted]).fetchall()}
    return [movement for movement in movements if movement.id not in with_line]


def _reversals_without_credit(movements: Sequence[BankTransaction]) -> list[BankTransaction]:
    """Reversals of credits that the bank took back before anybody told us of them."""
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


def _generated_transaction_id(sha256: str, occurrence: int) -> str:
    """Of a line, which has no transaction id: the same in every export of its file."""
    return f"statement-{sha256[:40]}-{occurrence}"
