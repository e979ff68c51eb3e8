"""Which service ends each kind of outgoing money that a second person decides."""

from approvals import services
from approvals.models import Approval, Kind
from receipts import approving as receipts
from refunds import approving as refunds
from withdrawals import services as withdrawals

HANDLERS: dict[str, services.Handler] = {
    Kind.WITHDRAWAL: withdrawals.APPROVAL_HANDLER,
    Kind.REFUND: refunds.HANDLER,
    **receipts.HANDLERS,
}


def of(approval: Approval) -> services.Handler:
    return HANDLERS[approval.kind]
