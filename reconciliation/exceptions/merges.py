"""Merge two reports of the same money: only one of them counts.

Both stay as the bank made them, so that their ids and lines are recognised later.
"""

from datetime import datetime

from core import ids
from ledger import accounts
from ledger import services as ledger
from reconciliation.exceptions import resolution_records
from reconciliation.matching import probable_duplicates, statement_fees
from reconciliation.models import BankTransaction, Resolution, ResolutionState, ResolutionType


def merge(
    bank_transaction: BankTransaction, other: BankTransaction, *, note: str, now: datetime
) -> Resolution:
    """Take its money out of suspense: only `other` counts. The caller holds both locks."""
    bank_transaction.resolve(ResolutionState.MERGED, now=now)
    resolution = resolution_records.draft(
        bank_transaction.id, ResolutionType.MERGED, note, now, bank_transaction.payment_id
    )
    resolution.merged_into_id = other.id
    # The ledger accepts one journal of a type for each subject.
    resolution.ledger_subject_id = ids.new("mrg_", now) if resolution.reopen_count else bank_transaction.id
    bank = accounts.bank(bank_transaction.bank)
    ledger.merge(subject_id=resolution.ledger_subject_id, amount=bank_transaction.amount, bank=bank, now=now)
    statement_fees.ask_about_merged(bank_transaction, other, now)
    return resolution_records.save(resolution)


def undo_merge(bank_transaction: BankTransaction, *, now: datetime) -> None:
    """Put the money into suspense again. The caller holds the lock of the bank transaction."""
    subject_id = probable_duplicates.merge_resolution(bank_transaction).ledger_subject_id
    bank = accounts.bank(bank_transaction.bank)
    ledger.unmerge(subject_id=subject_id, amount=bank_transaction.amount, bank=bank, now=now)
    bank_transaction.resolve(ResolutionState.OPEN, now=now)
