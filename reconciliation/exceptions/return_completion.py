"""The end of a return, by the bank's answer."""

import logging
from collections.abc import Callable
from datetime import datetime

from django.db import transaction

from approvals import services as approvals
from banks import TransferResult
from ledger import services as ledger
from payments.models import Payment
from reconciliation.exceptions import excesses, returns
from reconciliation.matching import reversals
from reconciliation.models import BankTransaction, ResolutionState, Return, ReturnStatus
from transfers import services as transfers
from transfers.models import Transfer
from transfers.services import TransferHandler

log = logging.getLogger("reconciliation")


class _TransferHandler:
    """Handles the transfers of returns (see `transfers.services.TransferHandler`)."""

    def lock(self, order_id: str) -> None:
        movement, _ = lock(order_id)
        # If the money comes back, a reversal may take it; its lock comes before those of accounts.
        reversals.find_due(movement)

    def is_held(self, transfer: Transfer, *, now: datetime) -> bool:
        """Held while the bank is reversing the money itself, or it would go to a wrong account."""
        movement, _ = lock(transfer.id)
        is_reversed = reversals.find_unapplied(movement) is not None
        return is_reversed or not returns.may_be_sent(movement, transfer)

    def account_digest(self, order_id: str) -> str:
        return str(lock(order_id)[1].account_digest)

    def on_submitted(self, order_id: str, *, now: datetime) -> None:
        """Publish no event, because merchants do not see returns."""

    def on_completed(self, order_id: str, result: TransferResult, *, now: datetime) -> None:
        movement, payer_return = lock(order_id)
        approvals.cancel(order_id, now=now)  # a request to end the order as never arrived
        if result.status == "succeeded":
            _complete(movement, payer_return, result, now)
        elif result.status == "failed":
            _fail(movement, payer_return, result, now)
        else:
            _money_came_back(movement, payer_return, now)


TRANSFER_HANDLER: TransferHandler = _TransferHandler()


@transaction.atomic
def cancel_unsent(*, return_id: str, now: datetime) -> None:
    """Cancel a return that never reached its bank; its money is an exception again.

    Raises transfers.AlreadySubmitted.
    """
    movement, payer_return = lock(return_id)
    if payer_return.status != ReturnStatus.PENDING or not returns.cancel_pending(movement, now=now):
        raise transfers.AlreadySubmitted(return_id)
    reopen(movement, now)


def run_due(*, now: Callable[[], datetime]) -> None:
    """Send due orders, and ask about orders without an answer."""
    transfers.run_due("return", TRANSFER_HANDLER, now=now)


def lock(order_id: str) -> tuple[BankTransaction, Return]:
    """Lock payment, bank transaction and return. A reversal of an excess changes the payment too."""
    keys = Return.objects.values_list("movement_id", "movement__payment_id")
    movement_id, payment_id = keys.get(pk=order_id)
    if payment_id is not None:
        Payment.objects.locked(payment_id)
    movement = BankTransaction.objects.locked(movement_id)
    return movement, Return.objects.select_for_update(no_key=True).get(pk=order_id)


def _complete(movement: BankTransaction, payer_return: Return, result: TransferResult, now: datetime) -> None:
    payer_return.transition(ReturnStatus.COMPLETED, bank_reference=result.reference, completed_at=now)
    excesses.held_part(movement).resolve(ResolutionState.SENT_BACK, now=now)
    ledger.send_back(subject_id=payer_return.id, amount=payer_return.amount, to=payer_return.route, now=now)


def _fail(movement: BankTransaction, payer_return: Return, result: TransferResult, now: datetime) -> None:
    payer_return.transition(ReturnStatus.FAILED, failure_code=result.failure_code)
    reopen(movement, now)


def _money_came_back(movement: BankTransaction, payer_return: Return, now: datetime) -> None:
    payer_return.set_fields(returned_at=now)
    ledger.hold({payer_return.id: payer_return.amount}, source=payer_return.route, now=now)
    log.warning("the money of return %s came back and waits for staff", payer_return.id)
    reopen(movement, now)


def reopen(movement: BankTransaction, now: datetime) -> None:
    """Make the money an exception again, unless its bank reversed it meanwhile: then apply that reversal."""
    excesses.held_part(movement).resolve(ResolutionState.OPEN, now=now)
    payment = movement.payment if movement.is_credited else None
    reversals.apply_if_due(reversals.find_due(movement), movement, payment, now=now)
