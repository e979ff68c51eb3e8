"""What an approval does to returns, write-offs and orders that never arrived."""

from collections.abc import Callable
from datetime import datetime

from django.utils.translation import gettext as _

from approvals import services as approvals
from approvals.models import Approval, ApprovalKind
from reconciliation.exceptions import resolutions
from reconciliation.matching import order_completion, probable_duplicates, returnable, returns
from reconciliation.models import BankTransaction, ReturnStatus
from transfers import services as transfers


class _ReturnHandler:
    """A return that a second person approves or rejects (see `approvals.services.ApprovalHandler`)."""

    def lock(self, subject_id: str) -> None:
        order_completion.lock_return(subject_id)

    def approve(self, approval: Approval, *, now: datetime) -> None:
        """Raises NotDecidable for what the bank has reported since the request."""
        bank_transaction, payer_return = order_completion.lock_return(approval.subject_id)
        if payer_return.is_manual:
            returns.complete(bank_transaction, payer_return, now=now)
            return
        if returnable.is_being_reversed(bank_transaction):
            text = _(
                "The bank is reversing money of this transaction: ask the bank how much is left, or "
                "reject it."
            )
            raise approvals.NotDecidable(text)
        if others := probable_duplicates.probable_ids(bank_transaction):
            text = _("It is probably a duplicate of %(other)s. Reject it.")
            raise approvals.NotDecidable(text % {"other": others[0]})
        transfers.release(payer_return.id, now=now)

    def reject(self, approval: Approval, *, now: datetime) -> None:
        bank_transaction, payer_return = order_completion.lock_return(approval.subject_id)
        if not payer_return.is_manual:
            transfers.cancel(payer_return.id, now=now)
        payer_return.transition(ReturnStatus.CANCELED)
        order_completion.reopen(bank_transaction, now)


class _OpenUntilApproved:
    """After a rejection a reversal is still an open exception, and the bank is still asked about an order."""

    def __init__(self, lock: Callable[[str], object], approve: Callable[..., object]) -> None:
        self._lock, self._approve = lock, approve

    def lock(self, subject_id: str) -> None:
        self._lock(subject_id)

    def approve(self, approval: Approval, *, now: datetime) -> None:
        self._approve(approval, now=now)

    def reject(self, approval: Approval, *, now: datetime) -> None:
        pass


HANDLERS: dict[str, approvals.ApprovalHandler] = {
    ApprovalKind.RETURN: _ReturnHandler(),
    ApprovalKind.RETURN_BY_HAND: _ReturnHandler(),
    ApprovalKind.WRITE_OFF: _OpenUntilApproved(BankTransaction.objects.locked, resolutions.book_write_off),
    ApprovalKind.NEVER_ARRIVED: _OpenUntilApproved(
        lambda order_id: order_completion.handler_of(order_id).lock(order_id),
        order_completion.complete_as_never_arrived,
    ),
}
