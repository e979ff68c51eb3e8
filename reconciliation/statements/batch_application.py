"""Apply the bank transactions of a batch of statement lines: most together, the others one by one."""

import logging
from collections.abc import Sequence
from datetime import datetime

from django.db import OperationalError

from reconciliation.matching import services as matching
from reconciliation.models import BankTransaction, BankTransactionKind
from reconciliation.statements.line_storage import transaction_by_index

log = logging.getLogger("reconciliation")
MAX_FAILURES = 3
"""Failures after which the rest of a batch is left to the sweep: each can take seconds."""


def apply_transactions(movements: Sequence[BankTransaction], *, now: datetime) -> None:
    """Apply stored bank transactions of one bank. Errors are logged, and the sweep tries again."""
    # A credit that has a bank id already can be the one that a reversal takes back.
    credits = [
        movement
        for movement in movements
        if movement.kind == BankTransactionKind.CREDIT and not movement.later_bank_transaction_id
    ]
    others = {movement.id for movement in movements} - {movement.id for movement in credits}
    _one_by_one(sorted(others | _together(credits, now)), now)


def _one_by_one(movement_ids: Sequence[str], now: datetime) -> None:
    failures = 0
    for movement_id in movement_ids:
        failures += not matching.try_apply(movement_id=movement_id, now=now)
        if failures == MAX_FAILURES:
            log.error("the bank transactions of a statement after %s are left to the sweep", movement_id)
            return


def _together(movements: Sequence[BankTransaction], now: datetime) -> set[str]:
    """Return the ids of those that must be applied one by one: all of them if one has failed.

    None if the database has failed: each one would wait as long again, so the sweep gets them all.
    """
    if not movements:
        return set()
    try:
        with transaction_by_index():
            return matching.apply_together(movements, now=now)
    except OperationalError:
        log.exception("%s bank transactions of a statement are left to the sweep", len(movements))
        return set()
    except Exception:
        log.exception("%s bank transactions of a statement could not be matched together", len(movements))
        return {movement.id for movement in movements}
