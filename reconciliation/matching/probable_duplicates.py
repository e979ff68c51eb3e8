"""Held money that is probably the same bank transaction as another report.

The database function `reconciliation_probable_duplicates` has the rule; triggers and the audit use it too.
Two credits of the same bank, biller, reference and amount are surely two if both have a statement line, or
if neither has one and the bank gave two references. Otherwise they are probably one.
"""

from collections.abc import Sequence

from core.database import rows
from reconciliation.matching import returns
from reconciliation.models import (
    HELD_RESULTS,
    BankTransaction,
    BankTransactionKind,
    Resolution,
    ResolutionState,
    ResolutionType,
)

FIND_PROBABLE_DUPLICATES = """
SELECT one, min(other) FROM unnest(%s::text[]) AS one, reconciliation_probable_duplicates(one) AS other
GROUP BY one
"""
RETURNED = [ResolutionState.SENDING_BACK, ResolutionState.SENT_BACK]


def find(bank_transactions: Sequence[BankTransaction]) -> dict[str, BankTransaction]:
    """The oldest probable duplicate of each open credit, by the id of the credit."""
    asked = [each.id for each in bank_transactions if _is_open_credit(each)]
    if not asked:
        return {}
    found = dict(rows.run(FIND_PROBABLE_DUPLICATES, [asked]).fetchall())
    others = BankTransaction.objects.in_bulk(list(found.values()))
    return {one: others[other] for one, other in found.items()}


def probable_ids(bank_transaction: BankTransaction) -> list[str]:
    """Return the ids of all probable duplicates, also after a decision of staff."""
    found = rows.run("SELECT reconciliation_probable_duplicates(%s)", [bank_transaction.id]).fetchall()
    return [other for (other,) in found]


def is_returned_already(bank_transaction: BankTransaction) -> bool:
    """Whether staff sent the money of a probable duplicate back."""
    others = BankTransaction.objects.filter(pk__in=probable_ids(bank_transaction))
    return bool(others.filter(resolution_state__in=RETURNED).exists())


def payments_with_returned_money(payment_ids: list[str]) -> set[str]:
    """Return the payments for which staff sent or are sending other money back."""
    returned = BankTransaction.objects.filter(payment__in=payment_ids, resolution_state__in=RETURNED)
    return set(returned.values_list("payment_id", flat=True))


def merged_into(bank_transaction: BankTransaction) -> BankTransaction:
    """The bank transaction that counts: this one, or the one that it was merged into."""
    while bank_transaction.resolution_state == ResolutionState.MERGED:
        bank_transaction = BankTransaction.objects.get(pk=merge_resolution(bank_transaction).merged_into_id)
    return bank_transaction


def merge_resolution(bank_transaction: BankTransaction) -> Resolution:
    return Resolution.objects.filter(subject_id=bank_transaction.id, type=ResolutionType.MERGED).latest("id")


def _is_open_credit(bank_transaction: BankTransaction) -> bool:
    is_held = (
        bank_transaction.match_result in HELD_RESULTS
        and bank_transaction.resolution_state == ResolutionState.OPEN
    )
    is_open_credit = is_held and bank_transaction.kind == BankTransactionKind.CREDIT
    return is_open_credit or returns.find_open_excess(bank_transaction) is not None
