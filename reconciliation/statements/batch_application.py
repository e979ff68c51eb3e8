"""Bank transactions that lines made are judged like all others; the two plain kinds many together."""

import logging
from collections.abc import Callable, Sequence
from datetime import datetime

from django.db import OperationalError

from core import rows
from ledger import accounts, bulk
from reconciliation.matching import services as matching
from reconciliation.models import BankTransaction, BankTransactionKind, MatchResult
from reconciliation.statements import batch_crediting
from reconciliation.statements.line_storage import transaction_by_index

log = logging.getLogger("reconciliation")
MAX_FAILURES = 3
"""So many of a batch are tried alone in vain. Each may wait for seconds, and the sweep finds the others."""
BatchFunction = Callable[[str, Sequence[BankTransaction], datetime], set[str]]


def apply_transactions(bank: str, movements: Sequence[BankTransaction], *, now: datetime) -> None:
    """Judge what is stored safely. What goes wrong is logged and left to the sweep, as elsewhere."""
    references = _known_references(movements)
    without_bank_id = [
        movement
        for movement in movements
        if movement.kind == BankTransactionKind.CREDIT and not movement.later_bank_transaction_id
    ]
    unknown = [movement for movement in without_bank_id if movement.reference1 not in references]
    known = [movement for movement in without_bank_id if movement.reference1 in references]
    remaining = {movement.id for movement in movements} - {movement.id for movement in without_bank_id}
    remaining |= _run_batch(_hold_unknown_references, bank, unknown, now) | _run_batch(
        batch_crediting.credit_payments, bank, known, now
    )
    _one_by_one(sorted(remaining), now)


def _one_by_one(movement_ids: Sequence[str], now: datetime) -> None:
    failures = 0
    for movement_id in movement_ids:
        failures += not matching.try_apply(movement_id=movement_id, now=now)
        if failures == MAX_FAILURES:
            log.error("the bank transactions of a statement after %s are left to the sweep", movement_id)
            return


def _run_batch(
    function: BatchFunction, bank: str, movements: Sequence[BankTransaction], now: datetime
) -> set[str]:
    """The ids of those that are left to be judged alone: all of them where one stands in the others' way.

    None where the database does: alone each would wait for it as long again, and the sweep finds them.
    """
    try:
        return function(bank, movements, now) if movements else set()
    except OperationalError:
        log.exception("%s bank transactions of a statement are left to the sweep", len(movements))
        return set()
    except Exception:
        log.exception("%s bank transactions of a statement could not be judged together", len(movements))
        return {movement.id for movement in movements}


def _known_references(movements: Sequence[BankTransaction]) -> set[str]:
    """The references that we gave."""
    references = [movement.reference1 for movement in movements]
    rows_found = rows.run("SELECT reference1 FROM qrcodes_qrcode WHERE reference1 = ANY(%s)", [references])
    return {reference1 for (reference1,) in rows_found.fetchall()}


@transaction_by_index()
def _hold_unknown_references(bank: str, movements: Sequence[BankTransaction], now: datetime) -> set[str]:
    """Nobody asked for this money: it waits for staff. Others may be judging the same bank transactions.

    Returns the ids of those that the bank has named since they were stored: it may have taken them back.
    """
    waiting = BankTransaction.objects.not_matched().filter(pk__in=[movement.id for movement in movements])
    found = list(waiting.order_by("id").select_for_update(no_key=True))
    amounts = {movement.id: movement.amount for movement in found if not movement.later_bank_transaction_id}
    if amounts:
        BankTransaction.objects.filter(pk__in=amounts).update(
            match_result=MatchResult.UNMATCHED, matched_at=now
        )
        bulk.hold_all(amounts, source=accounts.bank(bank), now=now)
        log.warning(
            "%s bank transactions of %s wait for staff: %s", len(amounts), bank, MatchResult.UNMATCHED
        )
    return {movement.id for movement in found} - amounts.keys()
