"""Refunds that a bank made by itself: it took back what it had paid in."""

from datetime import datetime

from payments import services as payments
from payments.models import Payment
from refunds.models import Reason, Refund, Status
from refunds.settling import publish
from refunds.storing import store
from transactions import services as transactions
from transactions.models import Status as HistoryStatus

NOTE = "Taken back by the bank."


def record(payment: Payment, *, reversal_id: str, route: str, amount: int, now: datetime) -> Refund | None:
    """As much of `amount` (satang) as no refund has sent back goes by the refund path, completed at birth.

    None where refunds have sent back all of it, or are about to. The caller holds the payment's lock and
    posts to the ledger, which the bank does not ask for what is set aside.
    """
    part = min(amount, payment.left_to_refund)
    if part == 0:
        return None
    payments.reserve_refund(payment, part, now=now)
    by_bank = {"reason": Reason.OTHER, "note": NOTE, "reversal_id": reversal_id, "route": route}
    refund = store(payment, part, now, status=Status.COMPLETED, completed_at=now, **by_bank)
    payments.complete_refund(payment, part, now=now)
    transactions.settle_refund(refund_id=refund.id, status=HistoryStatus.SUCCEEDED)
    publish("refund.completed", refund, now)
    return refund
