"""Receipts that lines made are judged like all others; the two plain kinds many together."""

import logging
from collections.abc import Callable, Sequence
from datetime import datetime

from django.db import OperationalError

from core import rows
from receipts import services
from receipts.models import Kind, Outcome, Receipt
from receipts.statements import crediting
from receipts.statements.commits import by_index
from transactions import accounts, bulk

log = logging.getLogger("receipts")
MOST_FAILURES = 3
"""So many of a batch are tried alone in vain. Each may wait for seconds, and the sweep finds the others."""
Together = Callable[[str, Sequence[Receipt], datetime], set[str]]


def judge(bank: str, receipts: Sequence[Receipt], *, now: datetime) -> None:
    """Judge what is stored safely. What goes wrong is logged and left to the sweep, as elsewhere."""
    known = _ours(receipts)
    nameless = [receipt for receipt in receipts if receipt.kind == Kind.CREDIT and not receipt.also_known_as]
    strange = [receipt for receipt in nameless if receipt.reference1 not in known]
    ours = [receipt for receipt in nameless if receipt.reference1 in known]
    alone = {receipt.id for receipt in receipts} - {receipt.id for receipt in nameless}
    alone |= _together(_hold, bank, strange, now) | _together(crediting.apply, bank, ours, now)
    _one_by_one(sorted(alone), now)


def _one_by_one(receipt_ids: Sequence[str], now: datetime) -> None:
    failures = 0
    for receipt_id in receipt_ids:
        failures += not services.try_to_apply(receipt_id=receipt_id, now=now)
        if failures == MOST_FAILURES:
            log.error("the receipts of a statement after %s are left to the sweep", receipt_id)
            return


def _together(act: Together, bank: str, receipts: Sequence[Receipt], now: datetime) -> set[str]:
    """The ids of those that are left to be judged alone: all of them where one stands in the others' way.

    None where the database does: alone each would wait for it as long again, and the sweep finds them.
    """
    try:
        return act(bank, receipts, now) if receipts else set()
    except OperationalError:
        log.exception("%s receipts of a statement are left to the sweep", len(receipts))
        return set()
    except Exception:
        log.exception("%s receipts of a statement could not be judged together", len(receipts))
        return {receipt.id for receipt in receipts}


def _ours(receipts: Sequence[Receipt]) -> set[str]:
    """The references that we gave."""
    told = [receipt.reference1 for receipt in receipts]
    given = rows.run("SELECT reference1 FROM qrcodes_qrcode WHERE reference1 = ANY(%s)", [told])
    return {reference1 for (reference1,) in given.fetchall()}


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
