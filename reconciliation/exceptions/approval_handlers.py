"""What an approval does to returns, write-offs and orders that never arrived."""

from datetime import datetime

from django.utils.translation import gettext as _

from approvals import services as approvals
from approvals.models import Approval, ApprovalKind
from reconciliation.exceptions import (
    order_completion,
    probable_duplicates,
    resolutions,
    return_completion,
    returns,
)
from reconciliation.matching import reversals
from reconciliation.models import BankTransaction, ReturnStatus
from transfers import services as transfers


class _ReturnHandler:
    """A return that a second person approves or rejects (see `approvals.services.ApprovalHandler`)."""

    def lock(self, subject_id: str) -> None:
        return_completion.lock(subject_id)

    def approve(self, approval: Approval, *, now: datetime) -> None:
        movement, payer_return = return_completion.lock(approval.subject_id)
        if payer_return.is_manual:
            returns.complete_manual_return(movement, payer_return, now=now)
        else:
            _check_can_be_sent(movement)
            transfers.release(payer_return.id, now=now)

    def reject(self, approval: Approval, *, now: datetime) -> None:
        movement, payer_return = return_completion.lock(approval.subject_id)
        if not payer_return.is_manual:
            transfers.cancel(payer_return.id, now=now)
        payer_return.transition(ReturnStatus.CANCELED)
        return_completion.reopen(movement, now)


class _WriteOffHandler:
    """After a rejection the reversal is still an open exception."""

    def lock(self, subject_id: str) -> None:
        BankTransaction.objects.locked(subject_id)

    def approve(self, approval: Approval, *, now: datetime) -> None:
        resolutions.book_approved_write_off(approval, now=now)

    def reject(self, approval: Approval, *, now: datetime) -> None:
        pass


class _NeverArrivedHandler:
    """After a rejection the service keeps asking the bank about the order."""

    def lock(self, subject_id: str) -> None:
        order_completion.lock(subject_id)

    def approve(self, approval: Approval, *, now: datetime) -> None:
        order_completion.complete_as_never_arrived(approval, now=now)

    def reject(self, approval: Approval, *, now: datetime) -> None:
        pass


def _check_can_be_sent(movement: BankTransaction) -> None:
    """Raises NotDecidable for what the bank has reported since the request."""
    if reversals.find_unapplied(movement) is not None:
        raise approvals.NotDecidable(
            _("The bank is reversing money of this transaction: ask the bank how much is left, or reject it.")
        )
    if others := probable_duplicates.probable_ids(movement):
        text = _("It is probably a duplicate of %(other)s. Reject it.")
        raise approvals.NotDecidable(text % {"other": others[0]})


RETURNS = _ReturnHandler()
HANDLERS: dict[str, approvals.ApprovalHandler] = {
    ApprovalKind.RETURN: RETURNS,
    ApprovalKind.RETURN_BY_HAND: RETURNS,
    ApprovalKind.WRITE_OFF: _WriteOffHandler(),
    ApprovalKind.NEVER_ARRIVED: _NeverArrivedHandler(),
}
