"""Two reports that staff know to be one bank transaction: the one that waits counts no more.

Both reports stay as the bank made them, so that the bank's ids and lines are known when they come again.
"""

from datetime import datetime

from core import ids
from receipts import acting
from receipts.models import Act, Deed, Receipt, Resolution
from transactions import accounts, ledger


def book(receipt: Receipt, other: Receipt, *, by: str, why: str, now: datetime) -> Act:
    """The money of `receipt` leaves suspense, because `other` counts. The caller holds the locks of both."""
    receipt.resolve(Resolution.MERGED, now=now)
    act = acting.draft(receipt.id, Deed.MERGED, by, why, now, receipt.payment_id)
    act.merged_with = other.id
    # The ledger posts a fact once about each subject.
    act.posted_as = ids.new("mrg_", now) if act.round else receipt.id
    bank = accounts.bank(receipt.bank)
    ledger.merge(subject_id=act.posting, amount=receipt.amount, bank=bank, at=now)
    return acting.write_down(act)


def undo(receipt: Receipt, *, now: datetime) -> None:
    """There are two transactions after all: the money waits again. The caller holds the receipt's lock."""
    bank = accounts.bank(receipt.bank)
    ledger.unmerge(subject_id=_act(receipt).posting, amount=receipt.amount, bank=bank, at=now)
    receipt.resolve(Resolution.OPEN, now=now)


def counted(receipt: Receipt) -> Receipt:
    """The bank transaction that counts: the receipt, or the one that it was merged with."""
    while receipt.resolution == Resolution.MERGED:
        receipt = Receipt.objects.get(pk=_act(receipt).merged_with)
    return receipt


def _act(receipt: Receipt) -> Act:
    return Act.objects.filter(subject_id=receipt.id, deed=Deed.MERGED).latest("id")
