"""What an approval does to returns, write-offs and orders that never arrived."""

from collections.abc import Callable
from datetime import datetime

from approvals import services as approvals
from approvals.models import Approval, ApprovalKind
from reconciliation.exceptions import resolutions
from reconciliation.matching import order_completion
from reconciliation.models import BankTransaction


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
    ApprovalKind.RETURN: order_completion.RETURN_HANDLER,
    ApprovalKind.RETURN_BY_HAND: order_completion.RETURN_HANDLER,
    ApprovalKind.WRITE_OFF: _OpenUntilApproved(BankTransaction.objects.locked, resolutions.book_write_off),
    ApprovalKind.NEVER_ARRIVED: _OpenUntilApproved(
        lambda order_id: order_completion.handler_of(order_id).lock(order_id),
        order_completion.complete_as_never_arrived,
    ),
}
