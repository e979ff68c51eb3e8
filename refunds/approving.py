"""Refunds to an account other than the payer's, as far as a second person must approve them."""

from datetime import datetime

from approvals import payout_accounts
from approvals import services as approvals
from approvals.models import Approval, Kind
from refunds.destinations import Destination
from refunds.models import REJECTED_BY_STAFF, Refund
from refunds.settling import fail, locked
from transfers import services as transfers
from transfers.models import Transfer


def judge(refund: Refund, to: Destination, *, now: datetime) -> bool:
    """Whether it waits for a second person. The caller holds the locks: payment, refund."""
    item = approvals.Outgoing(
        kind=Kind.REFUND,
        subject_id=refund.id,
        merchant_id=refund.merchant_id,
        amount=refund.amount,
        bank_code=to.bank_code,
        account=to.account,
        account_name=to.account_name,
        note=refund.note or "",
    )
    return approvals.judge(item, now=now).is_waiting


class _Handler:
    """What happens to a refund that a second person decides (see `approvals.services.Handler`)."""

    def lock(self, subject_id: str) -> None:
        locked(subject_id)

    def approve(self, approval: Approval, *, now: datetime) -> None:
        _, refund = locked(approval.subject_id)
        order = Transfer.objects.get(pk=refund.id)
        with approvals.still_allowed():
            payout_accounts.check(refund.merchant_id, order.bank_code, order.account, now=now)
        refund.note_down(awaiting_approval=False, updated_at=now)
        transfers.release(refund.id, now=now)

    def reject(self, approval: Approval, *, now: datetime) -> None:
        payment, refund = locked(approval.subject_id)
        transfers.cancel(refund.id, now=now)
        refund.note_down(awaiting_approval=False)
        fail(refund, payment, REJECTED_BY_STAFF, now)


HANDLER: approvals.Handler = _Handler()
