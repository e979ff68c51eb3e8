"""Find the bank transaction of each statement line: a stored one without a line, or a new one."""

from collections.abc import Sequence
from datetime import datetime
from functools import partial

from banks import ReportedTransaction
from core.database import rows
from reconciliation.matching import deduplication, intake
from reconciliation.models import (
    BankTransaction,
    BankTransactionKind,
    LineResult,
    MatchResult,
    ReportSource,
    ResolutionState,
)
from reconciliation.statements.lines import FileLine

BankTransactionKey = tuple[str, str, int]
FIND_SIMILAR = """
WHERE t.reference1 = ANY(%s) AND t.biller_id = ANY(%s) AND t.bank = %s
    AND t.resolution_state <> 'undone' AND (t.paid_at >= %s AND t.paid_at < %s OR t.kind = %s)
ORDER BY t.id
"""
FIND_WITH_LINE = (
    "SELECT bank_transaction_id FROM reconciliation_statementline WHERE bank_transaction_id = ANY(%s)"
)


class LineMatcher:
    """Assigns a bank transaction to each readable line. The caller holds `deduplication.lock_names`."""

    def __init__(self, bank: str, lines: Sequence[FileLine]) -> None:
        self._bank, self._lines = bank, [(line, line.parsed) for line in lines if line.parsed]
        self._unassigned: dict[BankTransactionKey, list[BankTransaction]] = {}
        self.created: list[BankTransaction] = []
        reported = [report for _, report in self._lines]
        similar = _similar(bank, reported) if reported else []
        self._orphans = _reversals_without_credit(similar)
        for bank_transaction in _without_line(similar):
            self._unassigned.setdefault(_bank_transaction_key(bank_transaction), []).append(bank_transaction)
        self._reversals: dict[BankTransactionKey, list[deduplication.BankTransactionReport]] = {}
        reports: list[deduplication.BankTransactionReport] = [*similar, *reported]
        for each in reports:
            if each.kind == BankTransactionKind.REVERSAL:
                self._reversals.setdefault(_bank_transaction_key(each), []).append(each)

    def assign(self, now: datetime) -> None:
        """Give each line the stored bank transaction that it reports, or a new one that is not stored yet."""
        # Lines with an equal second come first, so that no line takes the bank transaction of its neighbour.
        for fits in (_is_same_second, self._is_same_bank_transaction):
            for line, report in self._lines:
                unassigned = (
                    [] if line.bank_transaction else self._unassigned.get(_bank_transaction_key(report), [])
                )
                if fitting := [each for each in unassigned if fits(each, report)]:
                    line.bank_transaction = min(fitting, key=partial(deduplication.closeness, report))
                    line.result = LineResult.ATTACHED
                    unassigned.remove(line.bank_transaction)
        for line, report in self._lines:
            if line.bank_transaction is None:
                line.result, line.bank_transaction = LineResult.NEW, self._create(report, now)

    def _is_same_bank_transaction(self, bank_transaction: BankTransaction, line: ReportedTransaction) -> bool:
        reversals = self._reversals.get(_bank_transaction_key(line), []) if line.kind == "credit" else []
        return deduplication.is_same_bank_transaction(
            bank_transaction, line
        ) and not deduplication.is_separated_by_reversal(bank_transaction, line, reversals)

    def _create(self, report: ReportedTransaction, now: datetime) -> BankTransaction:
        """A bank transaction that only this line reports."""
        bank_transaction = intake.build_bank_transaction(self._bank, report, ReportSource.STATEMENT, now)
        bank_transaction.bank_reference = f"statement-{bank_transaction.id}"  # a line has no transaction id
        bank_transaction.is_confirmed = bank_transaction.kind != BankTransactionKind.CREDIT
        self.created.append(bank_transaction)
        return bank_transaction

    def save(self) -> None:
        """Store the created bank transactions, with the ids that connect reversals to their credits.

        The earliest reversal chooses first: a later one may also fit a credit that came after the first.
        """
        for orphan in sorted(self._orphans, key=lambda bank_transaction: bank_transaction.paid_at):
            self._name_credit_of(orphan)
        for debit in sorted(self.created, key=lambda bank_transaction: bank_transaction.paid_at):
            if debit.kind == BankTransactionKind.REVERSAL and (credit := self._only_credit(debit)):
                debit.bank_reference = credit.current_bank_reference
        rows.copy_in(self.created)

    def _name_credit_of(self, orphan: BankTransaction) -> None:
        """Name the credit that only these lines report, if exactly one fits and no stored credit does."""
        fitting = [
            each
            for each in self._created_like(orphan)
            if each.kind == BankTransactionKind.CREDIT
            and each.paid_at < deduplication.reversal_cutoff(orphan)
            and not each.later_bank_reference
        ]
        if len(fitting) == 1 and not deduplication.unidentified_credits(orphan):
            fitting[0].later_bank_reference = orphan.bank_reference

    def _only_credit(self, debit: BankTransaction) -> BankTransaction | None:
        """The credit that a debit reverses: the only one that fits and is not reversed yet."""
        stored = BankTransaction.objects.filter(
            bank=self._bank, biller_id=debit.biller_id, reference1=debit.reference1, amount=debit.amount
        ).exclude(resolution_state=ResolutionState.UNDONE)
        similar = [*stored, *self._created_like(debit)]
        reversals = [each for each in similar if each.kind == BankTransactionKind.REVERSAL]
        reversed_references = {each.bank_reference for each in reversals}
        reversed_references |= {each.later_bank_reference for each in reversals}
        remaining = [
            each
            for each in similar
            if each.kind == BankTransactionKind.CREDIT
            and each.paid_at < deduplication.reversal_cutoff(debit)
            and not {each.bank_reference, each.current_bank_reference} & reversed_references
        ]
        if len(remaining) != 1 or deduplication.find_by_bank_reference(
            self._bank, remaining[0].current_bank_reference, BankTransactionKind.REVERSAL
        ):
            return None
        credit: BankTransaction = remaining[0]
        return credit

    def _created_like(self, bank_transaction: BankTransaction) -> list[BankTransaction]:
        return [
            created
            for created in self.created
            if _bank_transaction_key(created) == _bank_transaction_key(bank_transaction)
        ]


def _similar(bank: str, lines: Sequence[ReportedTransaction]) -> list[BankTransaction]:
    """Bank transactions that these lines may report, oldest first, and all reversals of their references."""
    billers, references = {line.biller_id for line in lines}, {line.reference1 for line in lines}
    since, until = deduplication.bank_day_range(line.paid_at for line in lines)
    values = (list(references), list(billers), bank, since, until, BankTransactionKind.REVERSAL)
    return rows.find(BankTransaction, FIND_SIMILAR, *values)


def _without_line(bank_transactions: Sequence[BankTransaction]) -> list[BankTransaction]:
    """Run a separate query: without table statistics, a join could read both tables."""
    if not bank_transactions:
        return []
    wanted = [each.id for each in bank_transactions]
    with_line = {each for (each,) in rows.run(FIND_WITH_LINE, [wanted]).fetchall()}
    return [each for each in bank_transactions if each.id not in with_line]


def _reversals_without_credit(bank_transactions: Sequence[BankTransaction]) -> list[BankTransaction]:
    """Reversals of credits that no report has named yet."""
    return [
        each
        for each in bank_transactions
        if each.kind == BankTransactionKind.REVERSAL
        and each.match_result == MatchResult.UNMATCHED
        and each.source != ReportSource.STATEMENT
        and not deduplication.find_by_bank_reference(
            each.bank, each.bank_reference, BankTransactionKind.CREDIT
        )
    ]


def _bank_transaction_key(money: deduplication.BankTransactionReport) -> BankTransactionKey:
    return money.biller_id, money.reference1, money.amount


def _is_same_second(bank_transaction: BankTransaction, line: ReportedTransaction) -> bool:
    is_other_second, _ = deduplication.closeness(bank_transaction, line)
    return not is_other_second and deduplication.is_same_bank_transaction(bank_transaction, line)
