"""Held money that is probably the same transaction as one that another source has reported.

The rule is one function of the database, `receipts_probably_same`, which its triggers and the audit use too.
Two credits of the same bank, biller, reference and amount are surely two if both have a statement line, or if
neither has one and the bank gave two transaction ids. Else they are probably one.
"""

from collections.abc import Sequence

from core import rows
from receipts.models import HELD, Kind, Receipt, Resolution

FIND = """
SELECT one, min(other) FROM unnest(%s::text[]) AS one, receipts_probably_same(one) AS other GROUP BY one
"""
RETURNED = [Resolution.SENDING_BACK, Resolution.SENT_BACK]


def of(receipts: Sequence[Receipt]) -> dict[str, Receipt]:
    """By the id of each open exception of money: the oldest transaction that it probably is."""
    asked = [receipt.id for receipt in receipts if _is_open(receipt)]
    if not asked:
        return {}
    found = dict(rows.run(FIND, [asked]).fetchall())
    others = Receipt.objects.in_bulk(list(found.values()))
    return {one: others[other] for one, other in found.items()}


def is_returned_already(receipt: Receipt) -> bool:
    """Whether staff have sent money back that is probably this transaction."""
    found: bool = Receipt.objects.filter(pk__in=others_of(receipt), resolution__in=RETURNED).exists()
    return found


def others_of(receipt: Receipt) -> list[str]:
    """The ids of the transactions that it probably is, whatever was decided about it."""
    return [other for (other,) in rows.run("SELECT receipts_probably_same(%s)", [receipt.id]).fetchall()]


def _is_open(receipt: Receipt) -> bool:
    is_held = receipt.outcome in HELD and receipt.resolution == Resolution.OPEN
    return is_held and receipt.kind == Kind.CREDIT
