"""Returns, write-offs and orders that never arrived, as far as a second person must approve them."""

from datetime import datetime

from approvals import services as approvals
from approvals.models import Approval, Kind
from receipts import orders, probable_duplicates, returns, reversals, settling, writing_off
from receipts.models import Receipt, ReturnStatus
from transfers import services as transfers


class _ReturnHandler:
    """What happens to a return that a second person decides (see `approvals.services.Handler`)."""

    def lock(self, subject_id: str) -> None:
        settling.locked(subject_id)

    def approve(self, approval: Approval, *, now: datetime) -> None:
        receipt, made = settling.locked(approval.subject_id)
        if made.by_hand:
            returns.complete_by_hand(receipt, made, now=now)
        else:
            _check_may_leave(receipt)
            transfers.release(made.id, now=now)

    def reject(self, approval: Approval, *, now: datetime) -> None:
        receipt, made = settling.locked(approval.subject_id)
        if not made.by_hand:
            transfers.cancel(made.id, now=now)
        returns.end(made, ReturnStatus.CANCELED)
        settling.wait_again(receipt, now)


class _WriteOffHandler:
    """A rejected write-off changes nothing: the reversal waits for another decision."""

    def lock(self, subject_id: str) -> None:
        Receipt.objects.locked(subject_id)

    def approve(self, approval: Approval, *, now: datetime) -> None:
        writing_off.book(approval, now=now)

    def reject(self, approval: Approval, *, now: datetime) -> None:
        pass


class _NeverArrivedHandler:
    """A rejected request changes nothing: the bank is asked about the order as before."""

    def lock(self, subject_id: str) -> None:
        orders.lock(subject_id)

    def approve(self, approval: Approval, *, now: datetime) -> None:
        orders.end_as_never_arrived(approval, now=now)

    def reject(self, approval: Approval, *, now: datetime) -> None:
        pass


def _check_may_leave(receipt: Receipt) -> None:
    """What the bank has reported since the return was requested. Raises NotDecidable."""
    if reversals.waiting_for(receipt) is not None:
        raise approvals.NotDecidable(
            "The bank says that it takes money of this back itself: ask it how much is left, or reject it."
        )
    if others := probable_duplicates.others_of(receipt):
        raise approvals.NotDecidable(f"It is probably the same transaction as {others[0]}. Reject it.")


RETURNS = _ReturnHandler()
HANDLERS: dict[str, approvals.Handler] = {
    Kind.RETURN: RETURNS,
    Kind.RETURN_BY_HAND: RETURNS,
    Kind.WRITE_OFF: _WriteOffHandler(),
    Kind.NEVER_ARRIVED: _NeverArrivedHandler(),
}
