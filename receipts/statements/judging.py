"""Receipts that lines made are judged like all others; those of unknown references together."""

import logging
from collections.abc import Sequence
from datetime import datetime

from qrcodes.models import QrCode
from receipts import services
from receipts.models import Kind, Outcome, Receipt
from receipts.statements.commits import by_index
from transactions import accounts, bulk

log = logging.getLogger("receipts")


def judge(bank: str, receipts: Sequence[Receipt], *, now: datetime) -> None:
    """Judge what is stored safely. What goes wrong is logged and left to the sweep, as elsewhere."""
    known = _ours(receipts)
    strange = [receipt for receipt in receipts if _is_strange(receipt, known)]
    alone = {receipt.id for receipt in receipts} - {receipt.id for receipt in strange}
    try:
        alone |= _hold(bank, strange, now)
    except Exception:
        log.exception("%s receipts of a statement could not be judged together", len(strange))
    for receipt_id in sorted(alone):
        services.try_to_apply(receipt_id=receipt_id, now=now)


def _is_strange(receipt: Receipt, known: set[str]) -> bool:
    """Money of which nobody can know anything; what the bank has named it may have taken back as well."""
    return receipt.kind == Kind.CREDIT and receipt.reference1 not in known and not receipt.also_known_as


def _ours(receipts: Sequence[Receipt]) -> set[str]:
    """The references that we gave."""
    told = [receipt.reference1 for receipt in receipts]
    return set(QrCode.objects.filter(reference1__in=told).values_list("reference1", flat=True))


@by_index()
def _hold(bank: str, receipts: Sequence[Receipt], now: datetime) -> set[str]:
    """Nobody asked for this money: it waits for staff. Others may be judging the same receipts.

    Returns the ids of those that the bank has named since they were stored: it may have taken them back.
    """
    waiting = Receipt.objects.not_judged().filter(pk__in=[receipt.id for receipt in receipts])
    found = list(waiting.order_by("id").select_for_update(no_key=True))
    amounts = {receipt.id: receipt.amount for receipt in found if not receipt.also_known_as}
    if amounts:
        Receipt.objects.filter(pk__in=amounts).update(outcome=Outcome.UNMATCHED, judged_at=now)
        bulk.hold_all(amounts, source=accounts.bank(bank), at=now)
        log.warning("%s receipts of %s wait for staff: %s", len(amounts), bank, Outcome.UNMATCHED)
    return {receipt.id for receipt in found} - amounts.keys()
