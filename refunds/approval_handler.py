"""Refunds to an account other than the payer's, as far as a second person must approve them."""

from datetime import datetime

from approvals import payout_accounts
from approvals import services as approvals
from approvals.models import Approval, ApprovalKind
from refunds.completion import fail, lock
from refunds.destinations import Destination
from refunds.models import REJECTED_BY_STAFF, Refund
from transfers import services as transfers
from transfers.models import Transfer


def request_approval(refund: Refund, to: Destination, *, now: datetime) -> bool:
    """Whether it waits for a second person. The caller holds the locks: payment, refund."""
    item = approvals.OutgoingMoney(
        kind=ApprovalKind.REFUND,
        subject_id=refund.id,
        merchant_id=refund.merchant_id,
        amount=refund.amount,
        bank_code=to.bank_code,
        account=to.account,
        account_name=to.account_name,
        note=refund.note or "",
    )
    return approvals.request(item, now=now).is_waiting


class _ApprovalHandler:
    """What happens to a refund that a second person decides (see `approvals.services.ApprovalHandler`)."""

    def lock(self, subject_id: str) -> None:
        lock(subject_id)

    def approve(self, approval: Approval, *, now: datetime) -> None:
        _, refund = lock(approval.subject_id)
        order = Transfer.objects.get(pk=refund.id)
        with approvals.as_not_decidable():
            payout_accounts.check(refund.merchant_id, order.bank_code, order.account, now=now)
        refund.set_fields(awaiting_approval=False, updated_at=now)
        transfers.release(refund.id, now=now)

    def reject(self, approval: Approval, *, now: datetime) -> None:
        payment, refund = lock(approval.subject_id)
        transfers.cancel(refund.id, now=now)
        refund.set_fields(awaiting_approval=False)
        fail(refund, payment, REJECTED_BY_STAFF, now)


APPROVAL_HANDLER: approvals.ApprovalHandler = _ApprovalHandler()
