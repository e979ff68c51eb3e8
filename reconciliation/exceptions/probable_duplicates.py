"""Held money that is probably the same transaction as one that another source has reported.

The rule is one function of the database, `reconciliation_probably_same`, which its triggers and the audit use
too. Two credits of the same bank, biller, reference and amount are surely two if both have a statement line,
or if neither has one and the bank gave two transaction ids. Else they are probably one.
"""

from collections.abc import Sequence

from core import rows
from reconciliation.models import HELD_RESULTS, BankTransaction, BankTransactionKind, ResolutionState

FIND_DUPLICATES = """
SELECT one, min(other) FROM unnest(%s::text[]) AS one, reconciliation_probable_duplicates(one) AS other GROUP
    BY one
"""
RETURNED = [ResolutionState.SENDING_BACK, ResolutionState.SENT_BACK]


def find(movements: Sequence[BankTransaction]) -> dict[str, BankTransaction]:
    """By the id of each open exception of money: the oldest transaction that it probably is."""
    asked = [movement.id for movement in movements if _is_open_credit(movement)]
    if not asked:
        return {}
    found = dict(rows.run(FIND_DUPLICATES, [asked]).fetchall())
    others = BankTransaction.objects.in_bulk(list(found.values()))
    return {one: others[other] for one, other in found.items()}


def is_returned_already(movement: BankTransaction) -> bool:
    """Whether staff have sent money back that is probably this transaction."""
    found: bool = BankTransaction.objects.filter(
        pk__in=ids_of(movement), resolution_state__in=RETURNED
    ).exists()
    return found


def ids_of(movement: BankTransaction) -> list[str]:
    """The ids of the transactions that it probably is, whatever was decided about it."""
    return [
        other
        for (other,) in rows.run("SELECT reconciliation_probable_duplicates(%s)", [movement.id]).fetchall()
    ]


def _is_open_credit(movement: BankTransaction) -> bool:
    is_held = movement.match_result in HELD_RESULTS and movement.resolution_state == ResolutionState.OPEN
    return is_held and movement.kind == BankTransactionKind.CREDIT
