"""How money on its way back to a payer ends, by the bank's word."""

import logging
from collections.abc import Callable
from datetime import datetime

from django.db import transaction

from approvals import services as approvals
from banks import Word
from receipts import returns, reversals
from receipts.models import Receipt, Resolution, Return, ReturnStatus
from transactions import ledger
from transfers import services as transfers
from transfers.services import Owner

log = logging.getLogger("receipts")


class ReturnOwner:
    """What `transfers` tells of its orders that are returns (see `transfers.services.Owner`)."""

    def lock(self, order_id: str) -> None:
        receipt, _ = locked(order_id)
        # If the money comes back a reversal may take it; its lock comes before those of accounts.
        reversals.due_with(receipt)

    def is_held(self, order_id: str, *, now: datetime) -> bool:
        """While the bank says that it takes money of this back itself: else it would leave twice."""
        receipt, _ = locked(order_id)
        return reversals.waiting_for(receipt) is not None

    def begin(self, order_id: str, *, now: datetime) -> None:
        """Nobody outside was told of it, so there is nothing to tell."""

    def settle(self, order_id: str, word: Word, *, now: datetime) -> None:
        receipt, made = locked(order_id)
        approvals.cancel(order_id, now=now)  # of a request to end it as never arrived
        if word.fate == "succeeded":
            _complete(receipt, made, word, now)
        elif word.fate == "failed":
            _fail(receipt, made, word, now)
        else:
            _come_back(receipt, made, now)


OWNER: Owner = ReturnOwner()


@transaction.atomic
def give_up(*, return_id: str, now: datetime) -> None:
    """End one that surely never reached its bank: its money waits for staff again, and this is never sent.

    Raises transfers.AlreadyTold.
    """
    receipt, made = locked(return_id)
    if made.status != ReturnStatus.PENDING or not returns.stop(receipt, now=now):
        raise transfers.AlreadyTold(return_id)
    wait_again(receipt, now)


def run_due(*, now: Callable[[], datetime]) -> None:
    """Carry out what is ordered, and ask about what was not answered."""
    transfers.work("return", OWNER, now=now)


def locked(order_id: str) -> tuple[Receipt, Return]:
    """Both under their locks."""
    receipt_id = Return.objects.values_list("receipt_id", flat=True).get(pk=order_id)
    receipt = Receipt.objects.locked(receipt_id)
    return receipt, Return.objects.select_for_update(no_key=True).get(pk=order_id)


def _complete(receipt: Receipt, made: Return, word: Word, now: datetime) -> None:
    returns.end(made, ReturnStatus.COMPLETED, bank_reference=word.reference, completed_at=now)
    receipt.resolve(Resolution.SENT_BACK, now=now)
    ledger.send_back(subject_id=made.id, amount=made.amount, to=made.route, at=now)


def _fail(receipt: Receipt, made: Return, word: Word, now: datetime) -> None:
    """It never left: it waits again."""
    returns.end(made, ReturnStatus.FAILED, failure_code=word.failure_code)
    wait_again(receipt, now)


def _come_back(receipt: Receipt, made: Return, now: datetime) -> None:
    """It arrived and came back to us: it waits again."""
    returns.end(made, ReturnStatus(made.status), returned_at=now)
    ledger.hold(subject_id=made.id, amount=made.amount, source=made.route, at=now)
    log.warning("the money of return %s came back and waits for staff", made.id)
    wait_again(receipt, now)


def wait_again(receipt: Receipt, now: datetime) -> None:
    """The money is open for staff; or its bank has taken it back meanwhile, and only could not have it."""
    receipt.resolve(Resolution.OPEN, now=now)
    reversals.catch_up(reversals.due_with(receipt), receipt, None, now=now)
